# tries: patches the comparison, the tolerances and the points of the declarations
# by: the judge compares outside
# layer: judged outside
# verdict: wrong

import attention_by_hand.exercises.kernel_regression as chapter
import autograder.student.engine.aspects as aspects
import autograder.student.engine.compare as compare
import autograder.student.engine.verdict as verdict

for module in (aspects, compare, verdict):
    module.compare = lambda *args, **kwargs: aspects.Finding(True)
compare.TOLERANCE.update(float64=(9e9, 9e9))
verdict.decide = lambda *args, **kwargs: None
for exercise in chapter.EXERCISES:
    object.__setattr__(exercise, "aspects", ())


def softmax(scores, axis=-1):
    return scores * 0
