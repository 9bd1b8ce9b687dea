"""The known answers: a package for each chapter, in it a module and a text for each exercise."""
