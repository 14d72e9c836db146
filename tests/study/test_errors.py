"""Bad studies: every one is refused in one line that says what, where and what is valid."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
import yaml

from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import parse_study

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

REFUSED = [  # what is written into a valid study
    "search: {intervals: 'no'}",
    "search: {intervals: 1}",
    # unknown keys
    "trainig: {max_steps: 3}",
    "zzz: 1",
    "cels: [{m: 64, d_model: 16}]\ncells: null",
    "cells: [{m: 64, d_modl: 16}]",
    '"a\\nb": 3',
    "training: {tuple: 3}",
    "training: {1: 2}",
    "training: 3",
    "training: {max_step: 3}",
    "cells: [{m: 64, d_model: 16}, {m: 32, d_model: 16, trainig: {}}]",
    "cells: [{m: 64, d_model: 16, training: {max_step: 3}}]",
    "graph: {famly: x}",
    "graph: {degree: 2}",
    "graph: {family: regular, degre: 2}",
    "cells: [{m: 64, d_model: 16, graph: {family: regular, degre: 2}}]",
    "cells: [{m: 64, d_model: 16, graph: {family: edges, fil: x}}]",
    "cells: [{m: 64, d_model: 16, context: {lenght: 3}}]",
    "cells: [{m: 64, d_model: 16, search: {seeds: 3}}]",
    "cells: [16]",
    "cells: {m: 64, d_model: 16}",
    "training: {sharpnes: 3, max_step: 4}",
    "search: {seeds: 0, target: 2, extra_seeds: -1}",
    "search: {seeds: 0, target: 2, extra_seeds: -1, mode: gird}",
    "search: 3",
    "search: {per: 3}",
    "facts: 3",
    "cells: [{m: 64, d_model: 16, graph: 3}]",
    "model: [[1]]",
    # names
    "model: maxx",
    "graph: {family: permutaton}",
    "graph: {family: [1]}",
    "embedding: {family: gausian}",
    "search: {mode: grd}",
    "training: {schedule: step}",
    "training: {initial: std}",
    "name: ../x",
    "name: ''",
    "name: 3",
    "model: file",
    "model: [maxx]",
    "model: groupd",
    "training: {start: constructed, initial: variance}",
    # graphs and embeddings
    "graph: {family: regular}",
    "graph: {family: regular, degree: 0}",
    "graph: {family: regular, degree: []}",
    "graph: {family: regular, degree: [1, 64]}",
    "graph: {family: regular, degree: [2, 2]}",
    "graph: {family: edges}",
    "training: {learning_rate: '1_0.5'}",
    "search: {target: '0.5'}",
    "search: {family: 12}",
    'model: "a\\nb"',
    "graph: {family: edges, file: nowhere.csv}",
    "graph: {family: edges, file: 3}",
    "embedding: {family: onehot}",
    "embedding: {family: binary, density: 3}",
    "embedding: {family: binary, density: 0}",
    "cells: [{m: 64, d_model: 16, graph: {family: regular}}]",
    "graph: {family: edges, file: ''}",
    "graph: {degree: 64, family: regular}",
    "graph: {family: regular, degree: [1, x]}",
    "embedding: {density: 2}",
    "embedding: 3",
    "embedding: {family: binary, density: 2.67}",
    "embedding: {family: table}",
    "embedding: {family: table, source: x}",
    "embedding: {family: table, source: x, counts: y, text: z}",
    # keys of another model
    "model: value\ntraining: {sharpness: 5}",
    "model: value\ntraining: {stop_score: 0.9}",
    "model: value\ntraining: {weight_decay: 0.1}",
    "model: value\ntraining: {tolerance: 2}",
    "model: value\ngraph: {family: regular, degree: 2}",
    "model: softmax\ntraining: {tolerance: 0.1}",
    "training: {tolerance: 0.1}",
    "training: {batch_size: 4}",
    "training: {weight_decay: 0.1}",
    "database: {family: function, keys: 8, queries: 4, values: 8}",
    "search: {axis: d_vo}",
    "name: my study",
    "facts: {tau: 0.5}",
    "cells: [{m: 64, d_model: 16, facts: {tau: 0.5}}]",
    "cells: [{m: 64, d_model: 16, database: {keys: 3}}]",
    "model: value\ntraining: {start: constructed}",
    "model: softmax\ntraining: {start: constructed}",
    "cells: [{m: 64, d_model: 16, training: {batch_size: 4}}]",
    # m and d_model
    "cells: [{m: 0, d_model: 16}]",
    "cells: [{m: 64, d_model: 16}, {m: -3, d_model: 16}]",
    "cells: [{m: '64', d_model: 16}]",
    "cells: [{m: true, d_model: 16}]",
    "cells: [{m: [64, 2.5], d_model: 16}]",
    "cells: [{m: 64, d_model: 0}]",
    "cells: [{m: 64}]",
    "cells: [{d_model: 16}]",
    "cells: [{m: [], d_model: 16}]",
    "cells: []",
    "cells: null",
    "cells: [{m: [64, 64], d_model: 16}]",
    # the search
    "search: {heads: [1, 2.5]}",
    "search: {heads: [1, 1]}",
    "search: {heads: []}",
    "search: {extra_seeds: 10001}",
    "search: {heads: [1, 8], max_D_K: 4}",
    "search: {mode: grid, heads: [8], D_K: [4, 6]}",
    "search: {mode: grid, heads: [2], D_K: [3]}",
    "search: {mode: grid, D_K: [64, 64]}",
    "search: {mode: grid}",
    "search: {mode: grid, D_K: [8], heads: [1], confirm_seeds: 5}",
    "search: {mode: grid, D_K: [8], heads: all, confirm_seeds: 0}",
    "search: {mode: grid, D_K: [8], heads: [1], keep_within: 0.5}",
    "search: {mode: widest, keep_within: 0}",
    "search: {transition_window: 3}",
    "search: {mode: widest, max_D_K: 64}",
    "search: {mode: widest, D_K: [8]}",
    "search: {mode: widest, heads: all, confirm_seeds: 0}",
    "search: {D_K: [4]}",
    "search: {keep_heads: [3]}",
    "search: {d_vo: [3]}",
    "search: {target: 1.1}",
    "search: {target: 0}",
    "search: {target: .nan}",
    "search: {target: true}",
    "search: {seeds: 0}",
    "search: {heads: none}",
    "search: {heads: [4], mode: grid, D_K: [6, 10]}",
    "search: {max_D_K: 63}",
    "search: {keep_heads: [1, 3, 5]}",
    "search: {per: {d_qk: 4}}",
    "search: {mode: widest, confirm_seeds: 5}",
    "search: {mode: widest, transition_seeds: 5}",
    "search: {mode: widest, keep_heads: [1]}",
    "search: {mode: grid, D_K: [64], max_D_K: 64}",
    "search: {mode: widest, rule: confirmed}",
    "search: {keep_within: some}",
    "search: {retest_steps: 107375}",
    # contexts and training
    "context: {length: 65}",
    "cells: [{m: 64, d_model: 16, context: {length: 65}}]",
    "context: {length: 1}",
    "context: {positive_rate: 1.5}",
    "context: {positive_rate: false}",
    "training: {learning_rate: true}",
    "training: {learning_rate: .nan}",
    "training: {learning_rate: .inf}",
    "training: {learning_rate: fast}",
    "training: {max_steps: -1}",
    "cells: [{m: 64, d_model: 16, training: {max_steps: 0}}]",
    "training: {max_steps: [700, 0]}",
    "training: {max_steps: [700, x]}",
    "training: {max_steps: []}",
    "training: {max_steps: [700, 700]}",
    "training: {schedule: warmup, warmup_steps: 0}",
    "training: {give_up_below: 0.81}",
    "training: {give_up_below: 0.5, schedule: cosine}",
    "training: {give_up_below: 0.5, schedule: warmup}",
    "training: {give_up_below: 0.5}\nsearch: {target: 0.9}",
    "training: {give_up_below: 0.5}\nsearch: {transition_seeds: 9}",
    "training: {give_up_below: 0.5}\nsearch: {mode: grid, D_K: [64]}",
    "model: value\ntraining: {give_up_below: 0.5}",
    "training: {warmup_steps: 500}",
    "training: {schedule: warmup, max_steps: 900}",
    "context: {length: [4, 8]}",
    "context: {length: 65}\ngraph: {family: regular, degree: 2}",
    "training: {give_up_below: 0.71}\nsearch: {confirm_seeds: 30}",
    "training: {give_up_below: 0.91}\nsearch: {seeds: 5, extra_seeds: 5}",
    "training: {schedule: warmup, warmup_steps: 701, max_steps: 700}",
    "cells: [{m: 64, d_model: 16, training: {schedule: warmup, max_steps: 900}}]",
    "training: {schedule: cosine, warmup_steps: 500}",
    # constructions
    "model: {construction: 6}",
    "model: {construktion: 1}",
    "model: {construction: 3}",
    "model: {construction: 1, iterations: 9}",
    "model: {construction: 5}\ngraph: {family: regular, degree: 4}\nsearch: {heads: [2, 4]}",
    "model: {construction: ours}\nsearch: {retest_steps: 4}",
    "model: {construction: ours}\ntraining: {initial: variance}",
    "search: {rule: confirmed, mode: grid, D_K: [64]}",
    "model: {construction: ours}\ntraining: {learning_rate: 1}",
    "model: [max, {construction: ours}]",
    "model: []",
    "model: [max, {construction: ours}, softmax]\nsearch: {mode: widest}",
    "model: [max, softmax, max]",
    "model: [{zoo: tied}, {zoo: tied}]",
    "model: [max, transformer]",
    "model: [value, {construction: ours}]\nsearch: {mode: widest}",
    "model: [max, {construction: one-head}]\nsearch: {mode: widest, heads: [2]}",
    "model: {construction: true}",
    "model: {construction: 5}\ngraph: {family: regular, degree: 3}\nsearch: {heads: [4, 2, 8]}",
    "model: {construction: one-head}",
    "model: {construction: one-head}\nsearch: {heads: all}",
    "model: {construction: 4}\ngraph: {family: regular, degree: 2}",
    "model: [max, {construction: ours}]\nsearch: {mode: grid, D_K: [64]}",
    "model: [{construction: ours}, max]\nsearch: {mode: widest}",
    "model: [max, {construction: 6}]",
    "model: []\nsearch: {mode: widest}",
    # model transformer
    "model: transformer\ntraining: {sharpness: 5}",
    "model: transformer\ntraining: {patience: 2}",
    "model: transformer\ntraining: {stop_score: 0.9}",
    "model: transformer\ncontext: {positive_rate: 0.4}",
    "model: transformer\ncontext: {length: 32}",
    "model: transformer\ntraining: {batch_size: null}",
    "model: transformer\ntraining: {batch_size: 0}",
    "model: transformer\ntraining: {weight_decay: -0.1}",
    "model: transformer\nsearch: {mode: grid, D_K: [6], heads: [1, 3]}",
    "model: transformer\nsearch: {heads: all}",
    "model: transformer\ntraining: {weight_decay: null}",
    "model: transformer\nembedding: {family: onehot}",
    "model: transformer\ngraph: {family: regular, degree: 1}",
    "model: transformer\nsearch: {mode: grid, D_K: [6], heads: [3]}",
    # model facts
    "model: facts\ndatabase: null",
    "model: facts\ncells: [{m: 8, d_model: 16}]",
    "model: facts\nfacts: {residual: 'no'}",
    "model: facts\nfacts: {train_embedding: 1}",
    "model: facts\ncells: [{d_model: 16, database: {keys: 0}}]",
    "model: facts\ndatabase: {family: function, keys: 8, queries: 4, values: 8, key: 3}",
    "model: facts\ndatabase: {family: functoin, keys: 8}",
    "model: facts\ndatabase: {keys: 8, queries: 4, values: 8}",
    "model: facts\ndatabase: {family: null, keys: 8}",
    "model: facts\ndatabase: 8",
    "model: facts\ndatabase: [8]",
    "model: facts\ndatabase: {family: low-rank, keys: 8, queries: 4, values: 8, rank: 9}",
    "model: facts\ndatabase: {family: function, keys: 1, queries: 1, values: 2}",
    "model: facts\ncells: [{d_model: 16, database: {keys: [9, 1], queries: 1}}]",
    "model: facts\ndatabase: {family: partial, keys: 8, queries: 4, values: 8, share: 0.04}",
    "model: facts\nfacts: {tau: 1.5}",
    "model: facts\ngraph: {family: regular, degree: 2}",
    "model: facts\ncontext: {length: 4}",
    "model: facts\ntraining: {patience: 2}",
    "model: facts\ntraining: {batch_size: 33}",
    "model: facts\nsearch: {}",
    "model: facts\nsearch: {axis: d_vo, heads: [1, 2]}",
    "model: facts\nsearch: {axis: d_vo, per: {d_qk: [1, 2], h: [1, 2]}}",
    "model: facts\nsearch: {axis: d_vo, per: {d_qk: [2, 2]}}",
    "model: facts\nsearch: {axis: d_vo, mode: grid}",
    "model: facts\ncells: [{m: [32, 8], d_model: 16}]",
    "model: facts\ncells: [{d_model: 16, database: {family: partial, share: 0.5}}]",
    "model: facts\ndatabase: {family: low-rank, keys: 2, queries: 1, values: 8, rank: 3}",
    "model: facts\ndatabase: {family: predicates, keys: 8, queries: 4, values: 8, per_query: 9}",
    "model: facts\ndatabase: {family: file}",
    "model: facts\ndatabase: {family: file, file: nowhere.csv}",
    "model: facts\ncells: [{d_model: 16, database: {family: file, file: nowhere.csv}}]",
    "model: facts\ndatabase: {family: file, file: nowhere.csv, keys: 3}",
    "model: facts\ndatabase: null\ncells: [{d_model: 16, facts: {tau: 0.5}}]",
    "model: facts\ncells: [{d_model: 16, facts: {taus: 0.5}}]",
    "model: facts\nembedding: {family: binary}",
    "model: facts\nsearch: {axis: d_vo, max_D_K: 4}",
    "model: facts\nsearch: {axis: d_vo, mode: grid, D_K: [4]}",
    "model: facts\nsearch: {axis: d_vo, keep_heads: [1]}",
    "model: facts\nsearch: {axis: d_vo, d_vo: [3]}",
    "model: facts\nsearch: {axis: d_vo, mode: grid, d_vo: [3], max_d_vo: 4}",
    "model: facts\nsearch: {axis: d_vo, mode: grid, d_vo: [3], keep_within: 0.5}",
    "model: facts\nsearch: {axis: d_vo, mode: grid, d_vo: [3], per: {total: 6}}",
    "model: facts\nsearch: {axis: d_vo, per: {total: 6}}",
    "model: facts\nsearch: {axis: d_vo, mode: grid, per: {total: 6, d_qk: 2}}",
    "model: facts\nsearch: {axis: d_vo, mode: grid, per: {total: 6, h: [1, 2]}}",
    "model: facts\nsearch: {axis: d_vo, per: {dqk: 3}}",
    # at the limits
    "training: {learning_rate: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}",
    "training: {learning_rate: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}",
    "training: {sharpness: [1, 2]}",
    "cells: [{d_model: 16, graph: {family: edges, file: nowhere.csv}}]",
    "cells: 3",
    "cells: [{m: 1, d_model: 16}]\ncontext: {length: 2}",
    "model: transformer\ncells: [{m: 4, d_model: 16}]\ncontext: {length: 2}",
    "model: [max, 3]",
    "model: {zo: grouped}",
    "model: {groups: 2}",
    "cells: [{d_model: 16, database: {family: file, file: facts.csv}}]",
    "model: 3",
    "model: {construction: 5}\ngraph: {family: regular, degree: 2}\nsearch: {heads: all}",
    "model: facts\ndatabase: {family: function, keys: 715827883, queries: 3, values: 8}",
]


def one_line(error: pytest.ExceptionInfo[StudyError]) -> str:
    message = str(error.value)
    assert message.isprintable(), "one line, without control characters"
    return message


def filled(written: str) -> dict[str, Any]:
    """A valid study with what is written in its place."""
    keys = yaml.safe_load(written)
    document = {"name": "x", **VALID.get(str(keys.get("model")), VALID["relations"]), **keys}
    return {key: value for key, value in document.items() if value is not None}


@pytest.mark.parametrize("written", REFUSED)
def test_bad_studies_are_refused_in_one_line(written: str) -> None:
    with pytest.raises(StudyError) as error:
        parse_study(filled(written), where="my.yaml")
    assert one_line(error).startswith("my.yaml: ")


TAKEN = [  # the largest, smallest or last that is valid of what ``REFUSED`` has too much
    f"name: {'x' * 100}",
    "graph: {family: regular, degree: 63}",
    "embedding: {family: binary, density: 2.66}",
    "embedding: {family: binary}\ncells: [{m: 16, d_model: 4}]",
    "embedding: {family: onehot}\ncells: [{m: 16, d_model: 16}]",
    "context: {length: 64}",
    "search: {max_D_K: 64}",
    "search: {mode: grid, heads: [4], D_K: [4, 6]}",
    "search: {mode: grid, heads: [1], D_K: [4], rule: paper}",
    "search: {mode: widest}",
    "search: {heads: all, keep_heads: [3]}",
    "search: {keep_within: none}",
    "search: {keep_heads: [1, 64], transition_seeds: 3, transition_window: 3}",
    "training: {give_up_below: 0.8}",
    "training: {give_up_below: 0.7}\nsearch: {confirm_seeds: 30}",
    "training: {give_up_below: 0.9}\nsearch: {seeds: 5, extra_seeds: 5}",
    "training: {give_up_below: 1}\nsearch: {target: 1}",
    "training: {give_up_below: 0}\nsearch: {target: 0.5}",
    "training: {schedule: warmup, warmup_steps: 700, max_steps: 700}",
    "training: {start: constructed}",
    "model: {construction: 5}\ngraph: {family: regular, degree: 3}\nsearch: {heads: [4, 3]}",
    "model: {construction: one-head}\nsearch: {heads: [1]}",
    "model: {construction: one-head}\nsearch: {mode: widest, heads: [1, 2]}",
    "model: {construction: ours, iterations: 9}\ngraph: {family: regular, degree: 2}",
    "model: [{construction: 1}, {construction: 2}]\nsearch: {mode: widest}",
    "model: [max, softmax]",
    "model: [value]",
    "model: transformer\ncontext: {length: 31}",
    "model: facts\ntraining: {batch_size: 32}",
    "model: facts\ncells: [{m: 32, d_model: 16}]",
    "model: facts\ndatabase: {family: function, keys: 2, queries: 1, values: 2}",
    "model: facts\ndatabase: {family: function, keys: 715827882, queries: 3, values: 8}",
    "model: facts\ndatabase: {family: low-rank, keys: 2, queries: 1, values: 8, rank: 2}",
    "model: facts\ndatabase: {family: low-rank, keys: 8, queries: 4, values: 8, rank: 8}",
    "model: facts\ndatabase: {family: predicates, keys: 8, queries: 4, values: 8, per_query: 8}",
    "model: facts\nsearch: {axis: d_vo, mode: grid, per: {total: 2, h: 2}}",
    "model: facts\nsearch: {axis: d_vo, mode: grid, d_vo: [3]}",
    "model: facts\nsearch: {axis: d_vo, per: {d_qk: 4, h: [1, 2]}, max_d_vo: 4}",
]


@pytest.mark.parametrize("written", TAKEN)
def test_studies_at_the_limits_are_taken_and_written_out_as_they_are(written: str) -> None:
    study = parse_study(filled(written))
    assert parse_study(yaml.safe_load(study.to_yaml())) == study


def test_a_list_with_a_fault_in_an_item_is_at_fault_for_that_alone() -> None:
    document = {"name": "x", "cells": [{"m": "sixty", "d_model": 8}], "search": {"heads": [1, 2.5]}}
    integer = "is not valid: input should be a valid integer"
    with pytest.raises(StudyError) as told:
        parse_study(document, "x.yaml")
    assert (
        str(told.value) == f"x.yaml: cells[0].m: 'sixty' {integer}; search.heads[1]: 2.5 {integer}"
    )


def test_a_study_has_up_to_a_thousand_cells() -> None:
    cells = [{"m": [*range(16, 516)], "d_model": 8}, {"m": [*range(16, 266)], "d_model": [9, 10]}]
    assert len(parse_study({"name": "x", "cells": cells}).cells) == 1000
    facts = {"tau": [i / 1001 for i in range(1, 1001)]}
    assert len(parse_study(filled("model: facts") | {"facts": facts}).cells) == 1000


def test_a_value_that_contains_itself_is_shown_too() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(StudyError) as error:
        parse_study({"name": "x", "cells": [{"d_model": 8}], "model": {"construction": loop}})
    assert one_line(error).startswith(f"study: model.construction: {'[' * 50}...]]]]… is not known")


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
        (
            {"name": "x", "cells": [{"m": [*range(16, 516)], "d_model": [1, 2, 3]}]},
            "cells: 1,500 or more; list at most 1,000 in one study",
        ),
        (
            {"name": "x", "cells": [{"m": m, "d_model": 8} for m in ([*range(16, 1016)], 16)]},
            "cells: 1,001 or more; list at most 1,000 in one study",
        ),
        (
            {"name": "x", "cells": [{"m": 9, "d_model": 8}], "model": ["max"] * 2000},
            "cells: 2,000 or more",
        ),
        (
            {"name": "x", "cells": [{"m": many[15:], "d_model": 8}], "model": ["max", "softmax"]},
            "cells: 1,970 or more",
        ),
        (
            {
                "name": "x",
                "cells": [{"m": 16, "d_model": 8}],
                "training": {"max_steps": many[:101]},
            },
            "training.max_steps: 101 step limits of one cell; give it at most 100",
        ),
        (
            {"name": "x"}
            | {"cells": [{"m": 16, "d_model": 8, "training": {"max_steps": n}} for n in many[:60]]}
            | {"search": {"retest_steps": 100}},
            "training.max_steps: 120 step limits of one cell; give it at most 100",
        ),
    ):
        tracemalloc.start()
        with pytest.raises(StudyError) as error:
            parse_study(document)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert one_line(error).startswith(f"study: {said}")
        assert peak < 100 * 2**20
