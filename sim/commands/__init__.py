"""Subcommands of ``attnlag``; each module is light to import and does its work in ``run``."""
