"""The report as one HTML file that needs nothing else: no script, no network, no other file."""

from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from kernelforge_server.report.sheets import Page

PACKAGE = "kernelforge_server.report"


def html(page: Page) -> str:
    """The page; every text in it is escaped."""
    environment = Environment(
        loader=PackageLoader(PACKAGE, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = resources.files(PACKAGE).joinpath("style.css").read_text("utf-8")
    return environment.get_template("page.html.j2").render(page=page, style=style)
