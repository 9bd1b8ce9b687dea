# tries: patches the comparison, the tolerances and the points of the declarations
# by: the judge compares outside
# layer: judged outside
# verdict: wrong

import autograder.engine.aspects as aspects
import autograder.engine.compare as compare
import autograder.engine.verdict as verdict
import autograder.exercises.kernel_regression as chapter

for module in (aspects, compare, verdict):
    module.compare = lambda *args, **kwargs: aspects.Finding(True)
compare.TOLERANCE.update(float64=(9e9, 9e9))
verdict.decide = lambda *args, **kwargs: None
for exercise in chapter.EXERCISES:
    object.__setattr__(exercise, "aspects", ())


def softmax(scores, axis=-1):
    return scores * 0
