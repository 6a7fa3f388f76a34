"""The commands of readers, answers and published figures."""
