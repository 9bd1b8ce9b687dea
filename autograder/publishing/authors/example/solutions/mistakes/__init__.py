"""The known answers: a package for each chapter, in it a module for each exercise."""
