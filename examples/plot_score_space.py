"""
Scores of a grid for an SVM
===========================

The free energy of a bag is a sum over features and sections. These terms, of the grids of all classes, are a vector
that an SVM can learn from: it corrects the assumptions of the generative models.
"""

# %%
# Handwritten digits of 8 x 8 pixels, in four gray levels and 4 x 4 sections:

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import countinggrids as cg

images, labels = load_digits(return_X_y=True)
X = cg.bag((images.reshape(-1, 8, 8) // 4.01).astype(int), sections=(4, 4), n_features=4)

# %%
# Three classifiers: the grids alone, a linear SVM on their scores, and the same SVM on the counts.

names = ["counting grids", "scores, linear SVM", "counts, linear SVM"]
accuracies: dict[str, list[float]] = {name: [] for name in names}
for n_train in (100, 300, 900):
    train, test, y_train, y_test = train_test_split(X, labels, train_size=n_train, random_state=0, stratify=labels)
    grids = cg.GridClassifier(cg.CountingGrid((12, 12), (8, 8), (4, 4)), random_state=0).fit(train, y_train)
    machines = [
        grids,
        make_pipeline(cg.ScoreSpace(grids, sum_over="nothing"), LinearSVC(C=1, random_state=0)).fit(train, y_train),
        LinearSVC(C=1, random_state=0, max_iter=10_000).fit(train, y_train),
    ]
    for name, machine in zip(names, machines, strict=True):
        accuracies[name].append(100 * machine.score(test, y_test))

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, values in accuracies.items():
    ax.plot([100, 300, 900], values, marker="o", label=name)
ax.set(
    xscale="log", xlabel="training images", ylabel="accuracy, %", xticks=[100, 300, 900], xticklabels=[100, 300, 900]
)
ax.legend(frameon=False)
plt.show()

# %%
# With ``compare="intersection"`` the scores of two bags are compared by what they have in common, for an SVM with a
# precomputed kernel. :doc:`The results on scenes </experiments/scenes15>` use it.

space = cg.ScoreSpace(grids, sum_over="nothing", center=False, power=1, compare="intersection")
machine = make_pipeline(space, SVC(C=10, kernel="precomputed")).fit(train, y_train)
print(f"intersection kernel: {100 * machine.score(test, y_test):.1f}%, 900 training images")
