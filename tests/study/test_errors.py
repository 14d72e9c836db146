"""Bad studies: every one is refused in one line that says what, where and what is valid."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import load_study, parse_study
from rgr_dist.study.yaml_document import load_yaml, shipped_studies, shipped_text

FUNCTION = {"family": "function", "keys": 8, "queries": 4, "values": 8}
VALID: dict[str, dict[str, Any]] = {
    "relations": {"cells": [{"m": 64, "d_model": 16}]},
    "transformer": {
        "cells": [{"m": 64, "d_model": 16}],
        "search": {"mode": "grid", "D_K": [8], "heads": [1, 2]},
    },
    "facts": {
        "database": FUNCTION,
        "cells": [{"d_model": 16}],
        "search": {"axis": "d_vo", "per": {"d_qk": [1, 2, 4]}},
    },
}
"""What a valid study of each kind of model needs; null in what is written leaves a key out."""

UNUSED = "does not use it"
REFUSED = [  # what is written into a valid study, and what its one line must say
    ("search: {intervals: 'no'}", "search.intervals: "),
    ("search: {intervals: 1}", "search.intervals: "),
    # unknown keys
    ("trainig: {max_steps: 3}", "trainig: unknown key; did you mean 'training'?"),
    ("zzz: 1", "zzz: unknown key; valid: name, model, graph,"),
    ("cels: [{m: 64, d_model: 16}]\ncells: null", "cels: unknown key"),
    ("cells: [{m: 64, d_modl: 16}]", "cells[0].d_modl: unknown key"),
    ('"a\\nb": 3', "unknown key"),
    ("training: {tuple: 3}", "training.tuple: unknown key"),
    ("training: {1: 2}", "training.1: unknown key"),
    ("training: 3", "training: 3"),
    ("training: {max_step: 3}", "training.max_step: unknown key; did you mean 'max_steps'?"),
    ("training: {max_step: 3}", "valid: learning_rate, sharpness"),
    ("cells: [{m: 64, d_model: 16}, {m: 32, d_model: 16, trainig: {}}]", "cells[1].trainig: unk"),
    ("cells: [{m: 64, d_model: 16, training: {max_step: 3}}]", "cells[0].training.max_step: unk"),
    ("graph: {famly: x}", "graph.famly: unknown key of family permutation; did you mean 'family'?"),
    ("graph: {degree: 2}", "graph.degree: unknown key of family permutation"),
    ("graph: {family: regular, degre: 2}", "did you mean 'degree'? valid: family, degree"),
    ("cells: [{m: 64, d_model: 16, graph: {family: regular, degre: 2}}]", "cells[0].graph.degre:"),
    ("cells: [{m: 64, d_model: 16, graph: {family: edges, fil: x}}]", "cells[0].graph.fil: unk"),
    # names
    ("model: maxx", "model: 'maxx' is not known; did you mean 'max'? valid: max"),
    ("graph: {family: permutaton}", "graph.family: 'permutaton' is not known; did you mean 'perm"),
    ("graph: {family: [1]}", "graph.family: '[1]'"),
    ("embedding: {family: gausian}", "embedding.family: 'gausian' is not known; did you mean 'ga"),
    ("search: {mode: grd}", "search.mode: 'grd' is not known; did you mean 'grid'?"),
    ("training: {schedule: step}", "valid: constant, cosine, warmup"),
    ("training: {initial: std}", "training.initial: 'std'"),
    ("name: ../x", "name: '../x'"),
    ("name: ''", "name: ''"),
    ("name: 3", "name: 3 is not valid: input should be a valid string"),
    # graphs and embeddings
    ("graph: {family: regular}", "graph.degree: missing"),
    ("graph: {family: regular, degree: 0}", "graph.degree: 0"),
    ("graph: {family: regular, degree: []}", "graph.degree: [] is not valid: input should be a"),
    ("graph: {family: regular, degree: [1, 64]}", "graph.degree: 64 is not valid where m = 64"),
    ("graph: {family: regular, degree: [2, 2]}", "m=64,d_model=16,degree=2 is listed twice"),
    ("graph: {family: edges}", "graph.file: missing"),
    ("training: {learning_rate: '1_0.5'}", "training.learning_rate: '1_0.5' is not valid"),
    ("search: {target: '0.5'}", "search.target: '0.5' is not valid"),
    ("search: {family: 12}", "search.family: unknown key; valid: "),
    ('model: "a\\nb"', "model: 'a b' is not known"),
    ("graph: {family: edges, file: nowhere.csv}", "nowhere.csv: cannot be read"),
    ("graph: {family: edges, file: 3}", "graph.file: 3"),
    ("embedding: {family: onehot}", "embedding.family: onehot needs d_model = m; with m = 64 give"),
    ("embedding: {family: binary, density: 3}", "embedding.density: 3 * log2(64) exceeds d_mode"),
    ("embedding: {family: binary, density: 3}", "give at most 2.66"),
    ("embedding: {family: binary, density: 0}", "embedding.density: 0"),
    # keys of another model
    ("model: value\ntraining: {sharpness: 5}", "training.sharpness: model value does not use it;"),
    ("model: value\ntraining: {stop_score: 0.9}", "training.stop_score: model value"),
    ("model: value\ntraining: {weight_decay: 0.1}", "training.weight_decay: model value"),
    ("model: value\ntraining: {tolerance: 2}", "training.tolerance: 2"),
    ("model: value\ngraph: {family: regular, degree: 2}", "graph.family: model value has one targ"),
    ("model: softmax\ntraining: {tolerance: 0.1}", "training.tolerance: model softmax"),
    ("training: {tolerance: 0.1}", f"training.tolerance: model max {UNUSED}"),
    ("training: {batch_size: 4}", f"training.batch_size: model max {UNUSED}"),
    ("training: {weight_decay: 0.1}", f"training.weight_decay: model max {UNUSED}"),
    ("database: {family: function, keys: 8, queries: 4, values: 8}", "database: model max does"),
    ("search: {axis: d_vo}", "search.axis: d_vo is not valid for model max; give d_k"),
    ("name: my study", "name: 'my study' is not valid: give letters, digits, '.', '_' and '-'"),
    # m and d_model
    ("cells: [{m: 0, d_model: 16}]", "cells[0].m: 0 is not valid: input should be greater than or"),
    ("cells: [{m: 64, d_model: 16}, {m: -3, d_model: 16}]", "cells[1].m: -3"),
    (
        "cells: [{m: '64', d_model: 16}]",
        "cells[0].m: '64' is not valid: input should be a valid",
    ),
    ("cells: [{m: true, d_model: 16}]", "cells[0].m: true"),
    ("cells: [{m: [64, 2.5], d_model: 16}]", "cells[0].m[1]: 2.5"),
    ("cells: [{m: 64, d_model: 0}]", "cells[0].d_model: 0"),
    ("cells: [{m: 64}]", "cells[0].d_model: missing; it has no default"),
    ("cells: [{d_model: 16}]", "cells[0].m: missing; it has no default"),
    ("cells: [{m: [], d_model: 16}]", "cells[0].m: [] is not valid: give at least one"),
    ("cells: []", "cells: [] is not valid: give at least one"),
    ("cells: null", "cells: missing"),
    ("cells: [{m: [64, 64], d_model: 16}]", "cells: m=64,d_model=16 is listed twice; list each c"),
    # the search
    ("search: {heads: [1, 2.5]}", "search.heads[1]: 2.5"),
    ("search: {heads: [1, 1]}", "search.heads: [1, 1] is not valid: list each"),
    ("search: {heads: []}", "search.heads: [] is not valid: give at least one"),
    ("search: {extra_seeds: 10001}", "search.extra_seeds: 10001 is not valid: input should be"),
    (
        "search: {heads: [1, 8], max_D_K: 4}",
        "search.heads: 8 is not valid with these D_K, as each needs a width of 1; give at most 4",
    ),
    ("search: {mode: grid, heads: [8], D_K: [4, 6]}", "as each needs a width of 1; give at most 6"),
    ("search: {mode: grid, heads: [2], D_K: [3]}", "search.heads: 2 divides none of D_K [3]"),
    (
        "search: {mode: grid, D_K: [64, 64]}",
        "search.D_K: [64, 64] is not valid: list each size once",
    ),
    ("search: {mode: grid}", "search.D_K: missing"),
    ("search: {mode: grid, D_K: [8], heads: [1], confirm_seeds: 5}", "not for mode grid"),
    (
        "search: {mode: grid, D_K: [8], heads: all, confirm_seeds: 0}",
        "search.heads: all; mode",
    ),
    (
        "search: {mode: grid, D_K: [8], heads: [1], keep_within: 0.5}",
        "search.keep_within: not for mode grid; leave it out",
    ),
    ("search: {mode: widest, keep_within: 0}", "search.keep_within: not for mode widest; leave"),
    (
        "search: {transition_window: 3}",
        "search.transition_window: has no use without trans",
    ),
    ("search: {mode: widest, max_D_K: 64}", "search.max_D_K: not for mode widest; leave it out"),
    ("search: {mode: widest, D_K: [8]}", "search.D_K: not for mode widest; leave it out"),
    ("search: {mode: widest, heads: all, confirm_seeds: 0}", "needs a list of heads"),
    ("search: {D_K: [4]}", "search.D_K: not for mode threshold; leave it out"),
    ("search: {keep_heads: [3]}", "search.keep_heads: 3 is not one of heads; list it there too"),
    ("search: {d_vo: [3]}", "search.d_vo: not for axis d_k; leave it out"),
    ("search: {target: 1.1}", "search.target: 1.1"),
    ("search: {target: 0}", "search.target: 0 is not valid: input should be greater than 0"),
    ("search: {target: .nan}", "search.target: NaN"),
    ("search: {target: true}", "search.target: true"),
    ("search: {seeds: 0}", "search.seeds: 0"),
    # contexts and training
    ("context: {length: 65}", "context.length: 65 needs 65 distinct items, and cell m=64"),
    ("cells: [{m: 64, d_model: 16, context: {length: 65}}]", "give 2 to 64"),
    ("context: {length: 1}", "context.length: 1"),
    ("context: {positive_rate: 1.5}", "context.positive_rate: 1.5"),
    ("context: {positive_rate: false}", "context.positive_rate: false"),
    ("training: {learning_rate: true}", "training.learning_rate: true"),
    ("training: {learning_rate: .nan}", "training.learning_rate: NaN is not valid: input should"),
    ("training: {learning_rate: .inf}", "training.learning_rate: Infinity"),
    ("training: {learning_rate: fast}", "training.learning_rate: 'fast'"),
    ("training: {max_steps: -1}", "training.max_steps: -1"),
    ("cells: [{m: 64, d_model: 16, training: {max_steps: 0}}]", "cells[0].training.max_steps: 0"),
    ("training: {max_steps: [700, 0]}", "training.max_steps: 0 is not valid"),
    ("training: {max_steps: [700, x]}", "training.max_steps: 'x' is not valid"),
    ("training: {max_steps: []}", "training.max_steps: [] is not valid"),
    ("training: {max_steps: [700, 700]}", "cells: m=64,d_model=16 is listed twice"),
    ("training: {schedule: warmup, warmup_steps: 0}", "training.warmup_steps: 0"),
    ("training: {give_up_below: 0.81}", "training.give_up_below: 0.81 is not valid with target"),
    ("training: {give_up_below: 0.81}", "up to 20 seeds, where a probe may pass with a run below"),
    ("training: {give_up_below: 0.81}", "it; give at most 0.8"),
    ("training: {give_up_below: 0.5, schedule: cosine}", "give_up_below: not for schedule cosine"),
    ("training: {give_up_below: 0.5, schedule: warmup}", "give_up_below: not for schedule warmup"),
    ("training: {give_up_below: 0.5}\nsearch: {target: 0.9}", "with target 0.9 and up to 20 seeds"),
    (
        "training: {give_up_below: 0.5}\nsearch: {transition_seeds: 9}",
        "with transition_seeds, which",
    ),
    ("training: {give_up_below: 0.5}\nsearch: {mode: grid, D_K: [64]}", "asks for every score"),
    ("model: value\ntraining: {give_up_below: 0.5}", "training.give_up_below: model value does"),
    ("training: {warmup_steps: 500}", "training.warmup_steps: schedule constant does not use it"),
    (
        "training: {schedule: warmup, max_steps: 900}",
        "2000 is not valid with max_steps = 900; give at most",
    ),
    # constructions
    ("model: {construction: 6}", "model.construction: '6' is not known"),
    ("model: {construction: 6}", "valid: 1, 2, 3, 4, 5, ours"),
    ("model: {construction: ours, p: 0.7}", "model.p: 0.7 is not valid: input should be less than"),
    ("model: {construktion: 1}", "model.construktion: unknown key; did you mean 'construction'"),
    ("model: {construction: 3}", "model algorithm-3 takes onehot"),
    ("model: {construction: 5, signatures: orthogonal}", "orthogonal is for algorithms 1, 3 and 4"),
    ("model: {construction: 1, p: 0.2}", "model.p: 0.2 is for bernoulli signatures alone"),
    ("model: {construction: 4, p: 0.2}", "model.p: 0.2 is not valid for algorithm 4; give at most"),
    ("model: {construction: 2, tau: best}", f"model.tau: construction 2 {UNUSED}"),
    ("model: {construction: ours, p: 0.1}", f"model.p: construction ours {UNUSED}"),
    ("model: {construction: 1, iterations: 9}", f"model.iterations: construction 1 {UNUSED}"),
    ("model: {construction: 5, colouring: batched}", "model.colouring: a study of algorithm 5"),
    (
        "model: {construction: 5}\ngraph: {family: regular, degree: 4}\nsearch: {heads: [2, 4]}",
        "search.heads: 2 is not valid for algorithm 5, whose heads take one edge of an item; with",
    ),
    ("model: {construction: ours}\nsearch: {retest_steps: 4}", "search.retest_steps: ours is not"),
    ("model: {construction: ours}\ntraining: {initial: variance}", f"model ours {UNUSED}"),
    (
        "search: {rule: confirmed, mode: grid, D_K: [64]}",
        "search.rule: confirmed; not for mode",
    ),
    (
        "model: {construction: ours}\ntraining: {learning_rate: 1}",
        f"learning_rate: model ours {UNUSED}",
    ),
    ("model: [max, {construction: ours}]", "model[1]: ours is made, not trained; list it in"),
    ("model: []", "model: an empty list; name one"),
    (
        "model: [max, {construction: ours}, softmax]\nsearch: {mode: widest}",
        "model[2]: softmax is trained; list it before constructions",
    ),
    ("model: [max, softmax, max]", "model[2]: max is listed twice"),
    ("model: [{zoo: tied}, {zoo: tied}]", "model[1]: tied is listed twice"),
    ("model: [max, transformer]", "model[1]: transformer holds no edges"),
    (
        "model: [max, {construction: 1}, {construction: 1, tau: best}]\nsearch: {mode: widest}",
        "model[2]: algorithm-1 is listed twice; list each once",
    ),
    (
        "model: [value, {construction: ours}]\nsearch: {mode: widest}",
        "model[0]: value holds no edges; list those that do",
    ),
    (
        "model: [max, {construction: one-head}]\nsearch: {mode: widest, heads: [2]}",
        "search.heads: construction one-head has one; give [1]",
    ),
    # model transformer
    ("model: transformer\ntraining: {sharpness: 5}", f"sharpness: model transformer {UNUSED}"),
    ("model: transformer\ntraining: {patience: 2}", f"patience: model transformer {UNUSED}"),
    ("model: transformer\ntraining: {stop_score: 0.9}", f"stop_score: model transformer {UNUSED}"),
    ("model: transformer\ncontext: {positive_rate: 0.4}", "positive_rate: model transformer does"),
    ("model: transformer\ncontext: {length: 32}", "context.length: 32 needs 65 distinct"),
    ("model: transformer\ncontext: {length: 32}", "give 2 to 31"),
    ("model: transformer\ntraining: {batch_size: null}", "training.batch_size: missing; model tra"),
    ("model: transformer\ntraining: {batch_size: 0}", "training.batch_size: 0"),
    ("model: transformer\ntraining: {weight_decay: -0.1}", "training.weight_decay: -0.1"),
    (
        "model: transformer\nsearch: {mode: grid, D_K: [6], heads: [1, 3]}",
        "list divisors of d_model = 16",
    ),
    ("model: transformer\nsearch: {heads: all}", "search.heads: all is not valid for model"),
    # model facts
    ("model: facts\ndatabase: null", "database: missing; model facts needs one"),
    (
        "model: facts\ncells: [{m: 8, d_model: 16}]",
        "since the database has 32 triples; leave m out",
    ),
    ("model: facts\nfacts: {residual: 'no'}", "facts.residual: "),
    ("model: facts\nfacts: {train_embedding: 1}", "facts.train_embedding: "),
    ("model: facts\ncells: [{d_model: 16, database: {keys: 0}}]", "cells[0].database.keys: 0 is"),
    (
        "model: facts\ndatabase: {family: function, keys: 8, queries: 4, values: 8, key: 3}",
        "database.key: unknown key of family function; did you mean 'keys'?",
    ),
    ("model: facts\ndatabase: {family: functoin, keys: 8}", "did you mean 'function'"),
    (
        "model: facts\ndatabase: {keys: 8, queries: 4, values: 8}",
        "database.family: missing; it has",
    ),
    ("model: facts\ndatabase: {family: null, keys: 8}", "database.family: "),
    ("model: facts\ndatabase: 8", "database: 8 is not valid: input should be a mapping of keys"),
    (
        "model: facts\ndatabase: [8]",
        "database: [8] is not valid: input should be a mapping of keys",
    ),
    (
        "model: facts\ndatabase: {family: low-rank, keys: 8, queries: 4, values: 8, rank: 9}",
        "database.rank: 9 is not",
    ),
    (
        "model: facts\ndatabase: {family: function, keys: 1, queries: 1, values: 2}",
        "my.yaml: database: it has one triple; give two or more",
    ),
    (
        "model: facts\ncells: [{d_model: 16, database: {keys: [9, 1], queries: 1}}]",
        "my.yaml: cells[0].database: it has one triple",
    ),
    ("model: facts\nfacts: {tau: 1.5}", "facts.tau: 1.5 is not valid"),
    ("model: facts\ngraph: {family: regular, degree: 2}", f"graph: model facts {UNUSED}"),
    ("model: facts\ncontext: {length: 4}", f"context.length: model facts {UNUSED}"),
    ("model: facts\ntraining: {patience: 2}", f"training.patience: model facts {UNUSED}"),
    (
        "model: facts\ntraining: {batch_size: 33}",
        "batch_size: 33 is not valid for facts=32,d_model=16; give at most 32",
    ),
    ("model: facts\nsearch: {}", "search.axis: d_k is not valid for model facts; give d_vo"),
    ("model: facts\nsearch: {axis: d_vo, heads: [1, 2]}", "search.heads: not for axis d_vo"),
    (
        "model: facts\nsearch: {axis: d_vo, per: {d_qk: [1, 2], h: [1, 2]}}",
        "search.per.h: a list beside that of d_qk; list the sizes of one",
    ),
    (
        "model: facts\nsearch: {axis: d_vo, per: {d_qk: [2, 2]}}",
        "d_qk: [2, 2] is not valid: list each",
    ),
    ("model: facts\nsearch: {axis: d_vo, mode: grid}", "search.d_vo: missing; mode grid needs"),
]


def one_line(error: pytest.ExceptionInfo[StudyError]) -> str:
    message = str(error.value)
    assert message.isprintable(), "one line, without control characters"
    return message


@pytest.mark.parametrize(("written", "said"), REFUSED)
def test_bad_studies_are_refused_in_one_line(written: str, said: str) -> None:
    keys = yaml.safe_load(written)
    document = {"name": "x", **VALID.get(str(keys.get("model")), VALID["relations"]), **keys}
    document = {key: value for key, value in document.items() if value is not None}
    with pytest.raises(StudyError) as error:
        parse_study(document, where="my.yaml")
    message = one_line(error)
    assert message.startswith("my.yaml: ")
    assert said in message


BAD_FILES = [
    (b"# soon\n", "it holds no key; rgr init NAME writes a study to begin with"),
    (b"", "it holds no key"),
    (b"name: x\ncells: [\n", "not valid YAML"),
    (b"- 1\n- 2", "a study is a mapping"),
    (b"name: \xff\xfe\x00", "not a text file"),
    (b"name: x\x00", "not valid YAML"),
    (b"x: [\n1,\n!!python/object:os.system x]", "line 3: the tag !!python/object:os.system is not"),
    (b"x: !!binary a", "line 1: the tag !!binary is not read here; leave it out"),
    (b"! x: 1", "line 1: the tag ! is not read here"),
    (b"? {a: b}\n: 3", "line 1: a key is no text; quote it"),
    (b"x:\n  1: 2", "line 2: a key is no text"),
    (b"name: x\nsearch: {}\nsearch: {}", "the mapping at line 1 has 'search' twice; write it once"),
    (b"a: 1\n--- \na: 1", "it holds several documents"),
    (b"cells: " + b"[" * 3000 + b"]" * 3000, "nested too deeply, more than 50 times"),
    (b"a: &a [1]", "line 1: the anchor a is not read here; leave it out"),
    (b"a: [\n*a]", "line 2: the anchor a is not read here"),
    (b"m: " + b"1" * 101, f"line 1: '{'1' * 40}' is not read here; give a decimal number of at"),
    (b"{" + b"".join(b"k%d: 1, " % i for i in range(60_000)) + b"}", "it holds more than 100,000"),
    (b"#" * 2**20 + b"#", "cannot be read: larger than 1 MiB; RGR_LARGEST_FILE sets another"),
]
ODD = "yes no on off 2026-02-31 2026-11-24T10:00:00Z 1:30 1:30.5 017 0x1f 0b1 1_000 .inf .nan << ="
BAD_FILES += [(f"x: {odd}".encode(), f"line 1: '{odd}' is not read here") for odd in ODD.split()]
BAD_FILES += [(f"{odd}: 1".encode(), f"line 1: '{odd}' is not read here") for odd in ODD.split()]


@pytest.mark.parametrize(("content", "said"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_files_that_hold_no_study_are_refused_in_one_line(
    content: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(StudyError) as error:
        load_study(str(path))
    assert one_line(error).startswith(f"{path}: {said}")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
"""What JSON can say."""


@given(JSON)
def test_what_json_can_say_comes_back_from_yaml_as_it_went(value: Any) -> None:
    """What is written of a study is read again, and by either of PyYAML's parsers."""
    assert load_yaml(yaml.safe_dump(value)) == value
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeLoader", raising=False)
        assert load_yaml(yaml.safe_dump(value)) == value


@pytest.mark.parametrize("study", shipped_studies())
def test_a_shipped_study_says_the_same_as_in_any_yaml(study: str) -> None:
    text = shipped_text(study)
    assert load_yaml(text) == yaml.safe_load(text)


def test_paths_that_cannot_be_read_are_refused_before_anything_waits(tmp_path: Path) -> None:
    loop, pipe = tmp_path / "loop.yaml", tmp_path / "pipe.yaml"
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    for path, fault in {
        tmp_path: "Is a directory",
        tmp_path / "missing.yaml": "No such file",
        loop: "",
        tmp_path / ("x" * 300 + ".yaml"): "File name too long",
        pipe: "a pipe or a device",
        Path("/dev/zero"): "a pipe or a device",
    }.items():
        with pytest.raises(StudyError) as error:
            load_study(str(path))
        assert one_line(error).startswith(f"{path}: cannot be read: {fault}")
        assert "give a readable YAML file" in str(error.value)


@pytest.mark.parametrize(
    ("name", "hint"), [("quickstrt", "'quickstart'"), ("zzz", ""), ("x" * 5000, "")]
)
def test_an_unknown_study_is_named_beside_the_valid_ones(name: str, hint: str) -> None:
    with pytest.raises(StudyError, match=f"^study '{name}': unknown") as error:
        load_study(name)
    message = one_line(error)
    assert all(known in message for known in shipped_studies())
    assert ("did you mean" in message) == bool(hint)
    assert hint in message


def test_overrides_are_read_as_yaml_and_the_last_wins() -> None:
    overrides = ["training.patience=3", "search.heads=[1, 4]", "training.patience=2", "model=max"]
    study = load_study("quickstart", overrides)
    assert study.search.heads == (1, 4)
    assert {cell.training.patience for cell in study.cells} == {2}
    assert load_study("quickstart", ["training.learning_rate=1e-4"]).cells[0].training == (
        study.cells[0].training.model_copy(update={"patience": 5, "learning_rate": 1e-4})
    )


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("training.max_steps", ["--set training.max_steps", "key.subkey=value"]),
        ("=3", ["--set =3", "key.subkey=value"]),
        ("name.x=3", ["--set name.x=3", "'name' has no keys below it"]),
        ("cells.m=3", ["--set cells.m=3", "'cells' has no keys below it"]),
        ("search.heads=[1,", ["--set search.heads=[1,", "YAML"]),
        ("search.seeds=" + "1" * 5000, ["give a decimal number of at most 100 digits"]),
        ("search.seeds=1:30", ["'1:30' is not read here"]),
        ("training={max_steps: 10, max_steps: 20}", ["has 'max_steps' twice"]),
        ("model" + ".x" * 5000 + "=1", ["key.subkey=value"]),
        ("search.target=2", ["search.target: 2"]),
    ],
)
def test_bad_overrides_are_refused_in_one_line(override: str, parts: list[str]) -> None:
    with pytest.raises(StudyError) as error:
        load_study("quickstart", [override])
    message = one_line(error)
    for part in parts:
        assert part in message


def test_several_faults_are_reported_at_once_and_many_are_counted() -> None:
    search = {"seeds": 0, "target": 2}
    document = {"name": "x", "cells": [{"m": 16, "d_modl": 8}], "search": search}
    with pytest.raises(StudyError) as reported:
        parse_study(document, "x.yaml")
    message = str(reported.value)
    assert message.startswith("x.yaml: cells[0].d_modl: unknown key; did you mean 'd_model'?")
    for fault in ("search.target: 2 is not valid", "search.seeds: 0 is not valid"):
        assert message.count(fault) == 1
    assert "\n" not in message
    assert "more" not in message
    document["search"] = search | {"extra_seeds": -1, "mode": "gird"}
    with pytest.raises(StudyError, match=r"; 2 more$"):
        parse_study(document, "x.yaml")


def test_a_list_with_a_fault_in_an_item_is_at_fault_for_that_alone() -> None:
    document = {"name": "x", "cells": [{"m": "sixty", "d_model": 8}], "search": {"heads": [1, 2.5]}}
    integer = "is not valid: input should be a valid integer"
    with pytest.raises(StudyError) as told:
        parse_study(document, "x.yaml")
    assert (
        str(told.value) == f"x.yaml: cells[0].m: 'sixty' {integer}; search.heads[1]: 2.5 {integer}"
    )


def test_lists_of_too_many_keys_and_cells_are_refused_before_they_are_multiplied() -> None:
    many = [*range(1, 1001)]
    sizes = {"family": "function", "keys": many, "queries": [1, 2, 3], "values": 2}
    facts = {"name": "x", "model": "facts", "search": {"axis": "d_vo"}, "database": sizes}
    keys = {f"k{i}": 1 for i in range(50_000)}
    training = {"max_steps": [*range(1, 10_001)], **keys}
    for document, said in (
        ({**facts, "cells": [{"m": many, "d_model": 8}]}, "cells: 3,000 or more"),
        (
            {**facts, "cells": [{"d_model": 8}], "facts": {"tau": [0.5] * 9999}},
            "cells: 3,000 or more",
        ),
        ({"name": "x", "cells": [{"m": 9, "d_model": 8}], "training": training}, "training.k0: "),
    ):
        tracemalloc.start()
        with pytest.raises(StudyError) as error:
            parse_study(document)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert one_line(error).startswith(f"study: {said}")
        assert peak < 100 * 2**20


@pytest.mark.parametrize("override", ["search.\udcff=5", "name=\udcff"])
def test_an_override_that_is_no_text_is_refused(override: str) -> None:
    with pytest.raises(StudyError, match=r"^--set [^ ]+: not (valid YAML: 'utf-8'|of the form)"):
        load_study("quickstart", [override])
