"""The version of this project."""

VERSION = "0.1.0"
