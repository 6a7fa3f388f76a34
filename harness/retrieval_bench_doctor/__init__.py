"""What is looked at before anything is measured."""
