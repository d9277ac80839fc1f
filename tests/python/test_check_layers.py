"""The layer checker finds planted violations and nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"


@pytest.fixture(scope="module")
def checker():
    spec = importlib.util.spec_from_file_location("check_layers", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_layers"] = module
    spec.loader.exec_module(module)
    return module


def plant(root: Path, files: dict[str, str]) -> Path:
    (root / "src").mkdir(exist_ok=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


ALLOWED = {
    "include/ropewalk/plan.h": '#include "ropewalk/export.h"\n',
    "src/base/check.h": "#include <string>\n",
    "src/plan/plan.cpp": '#include "base/check.h"\n#include "config/a.h"\n#include "plan/b.h"\n',
    "src/rotate/cpu/kernel.h": '#include "phase/phase.h"\n#include "table/t.h"\n',
    "verify/matrix.cpp": '#include "verify/matrix.h"\n#include "ropewalk/plan.h"\n',
    "verify/tolerance.h": "inline constexpr double kTolerance = 1e-7;\n",
    "measure/case.cpp": '#include "verify/compare.h"\n#include "base/parallel.h"\n',
    "cli/run.cpp": '#include "measure/case.h"\n#include "config/hf_fields.h"\n',
    "tests/a_test.cpp": "EXPECT_NEAR(a, b, bound);\nEXPECT_EQ(sum(0.5, x), 1.5);\n"
    "EXPECT_LE(a, verify::bound(1e-5));\nexpect_close(a, {1e-5}, bound);\n",
    "src/config/hf_fields.h": 'constexpr auto kRopeTheta = "rope_theta";\n',
}


def test_a_tree_that_obeys_is_clean(checker, tmp_path):
    assert checker.problems(plant(tmp_path, ALLOWED)) == []
    assert checker.main([str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("src/base/x.h", '#include "plan/plan.h"\n', "later stage plan"),
        ("src/phase/x.h", '#include "rotate/pair.h"\n', "later stage rotate"),
        ("src/rotate/cpu/x.cpp", '#include "capi/convert.h"\n', "later stage capi"),
        ("src/rotate/x.cpp", '  #  include "verify/oracle.h"\n', "from the side"),
        ("src/plan/x.cpp", '#include "measure/timer.h"\n', "from the side"),
        ("include/ropewalk/x.h", '#include "base/check.h"\n', "public header"),
        ("verify/x.cpp", '#include "measure/timer.h"\n', "verify includes"),
        ("measure/x.cpp", '#include "cli/table.h"\n', "measure includes"),
        ("cli/x.cpp", "\n" * 401, "401 lines"),
        ("tests/python/x.py", "\n" * 401, "401 lines"),
        ("tests/x_test.cpp", "EXPECT_NEAR(a,\n    b, 1e-6);\n", "tolerance"),
        ("src/plan/y.cpp", "constexpr double kTolerance = 1e-9;\n", "tolerance"),
        ("tests/x.cpp", "const double epsilon{0.001};\n", "tolerance"),
        ("tests/z.cpp", "EXPECT_LE(std::max(a, b), 6.2e-8L);\n", "tolerance"),
        ("tests/z.cpp", "ASSERT_LT(a,\n    1e-6 * b) << a;\n", "tolerance"),
        ("tests/z.cpp", "expect_close(log(2.0), {1, 2}, 1e-31);\n", "tolerance"),
        ("tests/python/z.py", "assert abs(a - b) <= 1e-6\n", "tolerance"),
        (
            "python/ropewalk/x.py",
            "np.testing.assert_allclose(a, b, rtol=1e-5)\n",
            "tolerance",
        ),
        ("tests/python/y.py", "assert a == pytest.approx(b, rel=1e-6)\n", "tolerance"),
        ("cli/y.cpp", 'auto theta = config["rope_theta"];\n', "hf_fields.h"),
    ],
)
def test_a_planted_violation_is_named(checker, tmp_path, capsys, name, text, said):
    root = plant(tmp_path, ALLOWED | {name: text})
    found = checker.problems(root)
    assert len(found) == 1, found
    assert found[0].startswith(f"{name}:") and said in found[0]
    assert checker.main([str(root)]) == 1
    assert name in capsys.readouterr().out


def test_a_folder_without_sources_is_refused(checker, tmp_path, capsys):
    assert checker.main([str(tmp_path)]) == 2
    assert "no folder src" in capsys.readouterr().err
