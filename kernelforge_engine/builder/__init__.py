"""The Builder: a disposable process that turns one candidate's source into a loadable artifact."""
