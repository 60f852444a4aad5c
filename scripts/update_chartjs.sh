#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Replaces web/chartjs/chart.umd.js and its LICENSE by those in the PyPI package django-unfold, and prints the version of
# Chart.js.
#   scripts/update_chartjs.sh [VERSION of django-unfold]
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip download -q --no-deps --disable-pip-version-check -d "$folder" "django-unfold${1:+==$1}"
python3 -m zipfile -e "$folder"/django_unfold-*.whl "$folder/wheel"
from=$folder/wheel/unfold/static/unfold/js/chart
version=$(grep -o 'version="[0-9.]*"' "$from/chart.js" | head -1 | cut -d '"' -f 2)
[ -n "$version" ] || { echo "$from/chart.js does not say its version; nothing is replaced" >&2; exit 1; }
install -m 644 "$from/chart.js" web/chartjs/chart.umd.js
# Chart.js's own license does not name the library of colors that its build has inside, which is under the same one.
colors=$(grep '@kurkle/color' web/chartjs/LICENSE)
sed "/^Copyright .* Chart.js Contributors/a $colors" "$from/LICENSE" > web/chartjs/LICENSE.part
grep -qF "$colors" web/chartjs/LICENSE.part || { echo "$from/LICENSE has no line of Chart.js's Contributors" >&2; exit 1; }
mv web/chartjs/LICENSE.part web/chartjs/LICENSE
echo "Chart.js $version of $(basename "$folder"/django_unfold-*.whl); change web/chartjs/README.md, and the version of"
echo "@kurkle/color there, in LICENSE and in scripts/sbom.py if that is another"
