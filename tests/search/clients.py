"""Trainables of other people, each in a Tuner as a user writes it, with a callback, a storage and
checkpoints; run as ``clients.py NAME FOLDER begin``, then ``go on``, and ``brute force``."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ray import tune

from rgr_dist.search.tune.threshold_search import ThresholdSearch


@dataclass(frozen=True)
class Client:
    """A trainable and what is asked of it.

    Attributes:
        has_checkpoints: it leaves some.
    """

    trainable: Callable[[dict[str, Any]], None]
    axis: str
    values: Sequence[int]
    metric: str
    target: float
    mode: Literal["max", "min"] = "max"
    seeds: int = 2
    seed_key: str = "seed"
    config: Mapping[str, Any] = field(default_factory=dict)
    has_checkpoints: bool = True

    def search(self) -> ThresholdSearch:
        return ThresholdSearch(
            self.axis, self.values, self.target, self.metric, self.mode, seeds=self.seeds,
            seed_key=self.seed_key,
        )  # fmt: skip


def with_checkpoints() -> Client:
    def train(config: dict[str, Any]) -> None:
        """Four epochs, each with a checkpoint."""
        for epoch in range(1, 5):
            accuracy = 0.9 + (config["width"] - 6) / 100 + config["seed"] / 1000
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "width").write_text(f"{config['width']}")
                saved = tune.Checkpoint.from_directory(folder)
                tune.report({"accuracy": accuracy * epoch / 4}, checkpoint=saved)

    return Client(train, "width", range(1, 17), "accuracy", 0.9, config={"rate": 0.1})


# ----- Ray's own examples, unmodified


def ray_basic() -> Client:
    from ray.tune.examples.tune_basic_example import easy_objective

    config = {"steps": 5, "height": 0, "activation": "relu"}
    return Client(
        easy_objective, "width", range(1, 17), "mean_loss", 2.0, "min", seeds=1, config=config,
        has_checkpoints=False,
    )  # fmt: skip


XGBOOST = {"objective": "binary:logistic", "eval_metric": ["logloss", "error"], "nthread": 1}


def ray_xgboost() -> Client:
    def train(config: dict[str, Any]) -> None:
        import numpy as np
        from ray.tune.examples.xgboost_example import train_breast_cancer

        np.random.seed(config["seed"])  # noqa: NPY002 (the example splits by NumPy's global one)
        train_breast_cancer(config)

    return Client(train, "max_depth", range(1, 7), "test-logloss", 0.135, "min", config=XGBOOST)


# ----- Other libraries


def scikit_learn() -> Client:
    def train(config: dict[str, Any]) -> None:
        import numpy as np
        from sklearn.datasets import load_digits
        from sklearn.neural_network import MLPClassifier

        inputs, labels = load_digits(return_X_y=True)
        model = MLPClassifier(
            hidden_layer_sizes=(config["width"],), learning_rate_init=0.01,
            random_state=config["random_state"],
        )  # fmt: skip
        for _ in range(6):
            model.partial_fit(inputs[:1200] / 16, labels[:1200], classes=range(10))
            with tempfile.TemporaryDirectory() as folder:
                np.savez(f"{folder}/weights.npz", *model.coefs_, *model.intercepts_)
                tune.report(
                    {"accuracy": model.score(inputs[1200:] / 16, labels[1200:])},
                    checkpoint=tune.Checkpoint.from_directory(folder),
                )

    return Client(train, "width", [1, 2, 4, 8, 16, 32], "accuracy", 0.6, seed_key="random_state")


def parity(examples: int) -> tuple[Any, Any]:
    """Vectors of four numbers, and whether the product of the first two is positive."""
    import torch

    inputs = torch.randn(examples, 4, generator=torch.Generator().manual_seed(1))
    return inputs, (inputs[:, 0] * inputs[:, 1] > 0).long()


def lightning() -> Client:
    def train(config: dict[str, Any]) -> None:
        import torch
        from lightning import pytorch as pl
        from ray.tune.integration.pytorch_lightning import TuneReportCheckpointCallback
        from torch.utils.data import DataLoader, TensorDataset

        class Classifier(pl.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                width = config["width"]
                self.model = torch.nn.Sequential(
                    torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2)
                )

            def training_step(self, batch: Any, number: int) -> Any:
                return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

            def validation_step(self, batch: Any, number: int) -> None:
                right = self.model(batch[0]).argmax(1) == batch[1]
                self.log("val_accuracy", right.float().mean())

            def configure_optimizers(self) -> Any:
                return torch.optim.Adam(self.parameters(), lr=0.03)

        pl.seed_everything(config["seed"])
        data = DataLoader(TensorDataset(*parity(512)), batch_size=64)
        report = TuneReportCheckpointCallback({"accuracy": "val_accuracy"}, filename="model.ckpt")
        trainer = pl.Trainer(
            max_epochs=8, accelerator="cpu", callbacks=[report], logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        begun = tune.get_checkpoint()
        if begun is None:
            trainer.fit(Classifier(), data, data)
        else:
            with begun.as_directory() as folder:
                trainer.fit(Classifier(), data, data, ckpt_path=f"{folder}/model.ckpt")

    return Client(train, "width", range(2, 11), "accuracy", 0.9)


def hugging_face() -> Client:
    def train(config: dict[str, Any]) -> None:
        import transformers
        from torch.utils.data import Dataset

        class Sequences(Dataset):  # type: ignore[type-arg]
            """Sequences of six tokens, and whether one of them is the first there is."""

            def __init__(self, examples: int, seed: int) -> None:
                import torch

                generator = torch.Generator().manual_seed(seed)
                self.tokens = torch.randint(0, 6, (examples, 6), generator=generator)
                self.labels = (self.tokens == 0).any(1).long()

            def __len__(self) -> int:
                return len(self.labels)

            def __getitem__(self, place: int) -> dict[str, Any]:
                return {"input_ids": self.tokens[place], "labels": self.labels[place]}

        class Report(transformers.TrainerCallback):
            """Reports what an evaluation found, with the checkpoint that follows it."""

            def on_evaluate(self, *told: Any, metrics: dict[str, float], **more: Any) -> None:
                self.metrics = metrics

            def on_save(self, arguments: Any, state: Any, control: Any, **more: Any) -> None:
                saved = f"{arguments.output_dir}/checkpoint-{state.global_step}"
                tune.report(self.metrics, checkpoint=tune.Checkpoint.from_directory(saved))

        transformers.set_seed(config["seed"])
        model = transformers.BertForSequenceClassification(
            transformers.BertConfig(
                vocab_size=6, hidden_size=2 * config["width"], num_hidden_layers=1,
                num_attention_heads=1, intermediate_size=4 * config["width"],
                max_position_embeddings=6, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
            )
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            trainer = transformers.Trainer(
                model=model,
                args=transformers.TrainingArguments(
                    output_dir=folder, num_train_epochs=6, per_device_train_batch_size=32,
                    learning_rate=0.01, eval_strategy="epoch", save_strategy="epoch",
                    use_cpu=True, report_to=[], disable_tqdm=True, seed=config["seed"],
                ),
                train_dataset=Sequences(512, 1),
                eval_dataset=Sequences(256, 2),
                compute_metrics=lambda told: {
                    "accuracy": float((told.predictions.argmax(1) == told.label_ids).mean())
                },
                callbacks=[Report()],
            )  # fmt: skip
            begun = tune.get_checkpoint()
            if begun is None:
                trainer.train()
            else:
                with begun.as_directory() as saved:
                    trainer.train(resume_from_checkpoint=saved)

    return Client(train, "width", [1, 2, 4, 8], "eval_accuracy", 0.8)


CLIENTS: dict[str, Callable[[], Client]] = {
    "with-checkpoints": with_checkpoints,
    "ray-basic": ray_basic,
    "ray-xgboost": ray_xgboost,
    "scikit-learn": scikit_learn,
    "lightning": lightning,
    "hugging-face": hugging_face,
}


# ----- In a Tuner


class Ended(tune.Callback):
    """Writes down each trial that completes; breaks after some, once."""

    def __init__(self, folder: Path, stop_after: int) -> None:
        self.folder, self.left = folder, stop_after

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        with (self.folder / "ended").open("a") as file:
            file.write(json.dumps(trial.config) + "\n")
        self.left -= 1

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        if not self.left and not (self.folder / "was cut").exists():
            (self.folder / "was cut").touch()
            raise RuntimeError("power cut")


def begin(
    client: Client,
    folder: Path,
    search: ThresholdSearch | None = None,
    scheduler: Any = None,
    stop_after: int = -1,
) -> None:
    tune.Tuner(
        client.trainable,
        param_space=dict(client.config),
        tune_config=tune.TuneConfig(
            search_alg=search or client.search(), num_samples=-1, max_concurrent_trials=2,
            reuse_actors=True, scheduler=scheduler, metric=client.metric, mode=client.mode,
        ),
        run_config=tune.RunConfig(
            name="mine", storage_path=str(folder), verbose=0, callbacks=[Ended(folder, stop_after)],
            failure_config=tune.FailureConfig(max_failures=1),
        ),
    ).fit()  # fmt: skip


def go_on(client: Client, folder: Path) -> dict[str, Any]:
    tune.Tuner.restore(str(folder / "mine"), trainable=client.trainable).fit()
    search = client.search()
    search.restore_from_dir(str(folder / "mine"))
    found = search.threshold()
    failed = found.failed and found.failed.value
    return {"status": found.status, "value": found.value, "failed": failed, "scores": found.scores}


def brute_force(client: Client, folder: Path) -> dict[int, dict[int, float]]:
    """The last metric of every value and seed, by Tune's own grid search."""
    results = tune.Tuner(
        client.trainable,
        param_space={
            **client.config,
            client.axis: tune.grid_search(list(client.values)),
            client.seed_key: tune.grid_search(list(range(client.seeds))),
        },
        tune_config=tune.TuneConfig(reuse_actors=True, max_concurrent_trials=2),
        run_config=tune.RunConfig(name="all", storage_path=str(folder), verbose=0),
    ).fit()
    scores: dict[int, dict[int, float]] = {value: {} for value in client.values}
    for result in results:
        assert result.config is not None
        assert result.metrics is not None
        value, seed = result.config[client.axis], result.config[client.seed_key]
        scores[value][seed] = result.metrics[client.metric]
    return scores


if __name__ == "__main__":
    asked, there, what = CLIENTS[sys.argv[1]](), Path(sys.argv[2]), sys.argv[3]
    do: Callable[[Client, Path], Any] = {"begin": begin, "go on": go_on}.get(what, brute_force)
    (there / f"{what}.json").write_text(json.dumps(do(asked, there)))
