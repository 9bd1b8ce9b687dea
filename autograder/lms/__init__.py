"""From a learning management system and back: archives of submissions, feedback, worksheets."""
