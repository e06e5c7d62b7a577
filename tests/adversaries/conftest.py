"""`pytest tests/adversaries --store-results` keeps what was found, for the table in the README."""


def pytest_addoption(parser):
    parser.addoption("--store-results", action="store_true", help="keep what was found")
