#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports models of scikit-learn to ONNX by skl2onnx, and compares their results here with ONNX Runtime's.

    compare_sklearn.py [-d DEVICE]

The models are fitted to data sets that scikit-learn carries: classifiers to irises, of two kinds, of three, and by their
names, regressions to diabetes. A model agrees where each label is the same and no number differs by more than 1e-4 of the
largest; exit code 1 where one does not. All are exported as skl2onnx does by default, so that classifiers end in ZipMap. Needs
scikit-learn, skl2onnx, onnxruntime, and dlprim in PYTHONPATH.
"""
import argparse
import sys
import warnings

import dlprim
import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn import (
    cluster,
    datasets,
    decomposition,
    discriminant_analysis,
    ensemble,
    impute,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

CLASSIFIERS = [
    linear_model.LogisticRegression(), tree.DecisionTreeClassifier(max_depth=3), ensemble.RandomForestClassifier(10),
    ensemble.ExtraTreesClassifier(5), ensemble.GradientBoostingClassifier(n_estimators=10),
    ensemble.AdaBoostClassifier(n_estimators=5), neural_network.MLPClassifier(max_iter=50), naive_bayes.GaussianNB(),
    neighbors.KNeighborsClassifier(), discriminant_analysis.LinearDiscriminantAnalysis(), linear_model.SGDClassifier(),
    pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
    svm.SVC(), svm.SVC(kernel="linear"), svm.SVC(kernel="poly"), svm.SVC(kernel="sigmoid"), svm.SVC(probability=True),
    svm.NuSVC(), svm.LinearSVC(),
]
REGRESSIONS = [
    linear_model.LinearRegression(), linear_model.Ridge(), tree.DecisionTreeRegressor(), ensemble.RandomForestRegressor(10),
    ensemble.GradientBoostingRegressor(n_estimators=10), neural_network.MLPRegressor(max_iter=50),
    svm.SVR(), svm.SVR(kernel="linear"), svm.SVR(kernel="poly"), svm.SVR(kernel="sigmoid"), svm.NuSVR(), svm.LinearSVR(),
]
OTHERS = [
    cluster.KMeans(3), decomposition.PCA(2), preprocessing.StandardScaler(), preprocessing.MinMaxScaler(),
    preprocessing.RobustScaler(), preprocessing.Normalizer("l1"), preprocessing.Normalizer("l2"),
    preprocessing.Normalizer("max"), preprocessing.Binarizer(), preprocessing.PolynomialFeatures(), impute.SimpleImputer(),
    ensemble.IsolationForest(n_estimators=5), svm.OneClassSVM(), preprocessing.KBinsDiscretizer(4, encode="onehot-dense"),
    pipeline.make_pipeline(preprocessing.KBinsDiscretizer(4, encode="ordinal"), preprocessing.OneHotEncoder()),
]


def differ(ours, theirs):
    """By how much of the largest; 1 where labels or the keys of maps differ."""
    if isinstance(theirs, list):
        if not isinstance(ours, list) or [list(each) for each in ours] != [list(each) for each in theirs]:
            return 1.0
        ours, theirs = ([list(each.values()) for each in maps] for maps in (ours, theirs))
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return 1.0
    if theirs.dtype.kind not in "fiu":
        return float((ours.astype(str) != theirs.astype(str)).any())
    largest = np.abs(theirs).max() or 1
    return float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max() / largest)


def compare(model, x, context):
    """By how much the results differ from ONNX Runtime's, at most."""
    exported = to_onnx(model, x[:1], target_opset={"": 17, "ai.onnx.ml": 3}).SerializeToString()
    ours = dlprim.ONNXSession(context, exported).run({"X": x})
    theirs = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"]).run(None, {"X": x})
    return max(differ(a, b) for a, b in zip(ours.values(), theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="cpu")
    context = dlprim.Context(parser.parse_args().device)
    warnings.simplefilter("ignore")
    np.random.seed(7)
    irises, kinds = datasets.load_iris(return_X_y=True)
    irises, names = irises.astype(np.float32), np.array(["setosa", "versicolor", "virginica"])[kinds]
    patients, progress = datasets.load_diabetes(return_X_y=True)
    patients = patients.astype(np.float32)
    runs = [(each, what, irises, labels) for each in CLASSIFIERS
            for what, labels in (("of three", kinds), ("of two", (kinds == 1).astype(np.int64)), ("by name", names))]
    runs += [(each, "", patients, progress) for each in REGRESSIONS]
    runs += [(each, "", irises, kinds) for each in OTHERS]
    failed = 0
    for model, what, x, y in runs:
        name = f"{type(model).__name__} {what}".strip()
        try:
            # Beside the rows that it was fitted to: the score of a support vector is zero but for rounding, and its sign a label.
            difference = compare(model.fit(x, y), x + np.float32(0.03), context)
        except dlprim.DlprimError as error:
            print(f"{name}: {error}  FAILED", flush=True)
            failed += 1
            continue
        agrees = difference <= 1e-4
        failed += not agrees
        print(f"{name}: differs by {difference:.1e}{'' if agrees else '  FAILED'}", flush=True)
    print(f"{len(runs) - failed} of {len(runs)} agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
