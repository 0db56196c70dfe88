"""The images that programs run in: made without a network, twice the same, told by their labels."""

import zipfile
from collections.abc import Generator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound
from docker.models.images import Image

from podium.sandbox import IMAGE, SandboxError, images
from podium.sandbox.images import BASE_IMAGE, RECIPES, ImageRecipe, connect, labels, make_image
from podium.sandbox.packages import HERE, WheelTarget, fetch_wheels, pinned_packages, pins_digest
from tests.sandbox.boxes import needs

TESTED = "podium-sandbox-tested"
USE_IT = "import sys; sys.path.insert(0, '/opt/podium/site'); import tiny; print(tiny.__cached__)"
HERE_AND_NOW = WheelTarget(python="3.11.2", machine="x86_64", glibc="2.36")


@pytest.fixture
def client() -> Generator[docker.DockerClient]:
    needs("docker")
    with closing(connect()) as connected:
        yield connected


@pytest.fixture
def recipe(tmp_path: Path) -> ImageRecipe:
    """An image with one package that lies in a folder, so that no index is asked."""
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    about = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "ANSWER = 42\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", about)
        archive.writestr(
            "tiny-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    listed = tmp_path / "tiny.txt"
    listed.write_text(f"# one package\n--no-index\n--find-links {tmp_path}\ntiny==1.0\n")
    return ImageRecipe("tested", TESTED, listed)


def remove_image(client: docker.DockerClient) -> None:
    with suppress(ImageNotFound):
        client.images.remove(TESTED)


@pytest.mark.docker
def test_building_twice_changes_nothing_and_each_step_is_told(
    client: docker.DockerClient, recipe: ImageRecipe
) -> None:
    lines: list[str] = []
    try:
        first = make_image(client, recipe, IMAGE, lines.append)
        again = make_image(client, recipe, IMAGE, lines.append)
        said = client.containers.run(
            TESTED, ["python3", "-c", USE_IT], network_mode="none", labels=labels(), remove=True
        )
    finally:
        remove_image(client)
    assert again.id == first.id
    assert first.labels["podium.packages"] == "tiny==1.0"
    assert first.labels["podium.base"] == IMAGE
    assert first.labels["podium.python"].startswith("3.")
    assert said.startswith(b"/opt/podium/site/__pycache__/tiny.")
    assert any("fetching 1 packages" in line for line in lines)
    assert lines[-1].startswith(f"{TESTED}: ready")


@pytest.mark.docker
def test_the_same_inputs_make_the_same_layers(
    client: docker.DockerClient, recipe: ImageRecipe
) -> None:
    made: list[Image] = []
    try:
        for _ in range(2):
            made.append(make_image(client, recipe, IMAGE, lambda line: None))
            remove_image(client)  # and with it what the engine would take the second from
    finally:
        remove_image(client)
    assert made[0].id != made[1].id  # its date is in it, so the second was really made
    assert made[0].attrs["RootFS"] == made[1].attrs["RootFS"]


@pytest.mark.docker
def test_cleaning_removes_an_image_whose_name_a_newer_one_took(
    client: docker.DockerClient, recipe: ImageRecipe
) -> None:
    lines: list[str] = []
    try:
        old = make_image(client, recipe, IMAGE, lines.append)
        new = make_image(client, replace(recipe, name="renamed"), IMAGE, lines.append)
        assert images.clean_engine(everything=False, say=lines.append) == 0
        left = {image.id for image in client.images.list(all=True)}
    finally:
        remove_image(client)
    assert old.id != new.id
    assert old.id not in left
    assert new.id in left


@pytest.mark.docker
def test_a_base_image_that_cannot_be_had_is_refused(
    client: docker.DockerClient, recipe: ImageRecipe
) -> None:
    with pytest.raises(SandboxError) as caught:
        make_image(client, recipe, "podium.invalid/no-such-base:1", lambda line: None)
    assert str(caught.value).startswith(
        "The base image podium.invalid/no-such-base:1 is not on this engine and cannot be pulled. "
        "Give one"
    )


@pytest.mark.docker
def test_status_tells_the_engine_the_images_and_the_containers(
    client: docker.DockerClient,
) -> None:
    lines: list[str] = []
    assert images.sandbox_status(lines.append) == 0
    assert lines[0].startswith(f"docker: Engine {client.version()['Version']}, cgroup v")
    assert any(line.startswith(f"image {IMAGE}: Python 3.") for line in lines)
    assert any(line.startswith("containers: ") for line in lines)
    assert any(line.startswith("bwrap: ") for line in lines[-2:])


def test_a_package_that_cannot_be_fetched_is_refused(recipe: ImageRecipe, tmp_path: Path) -> None:
    with recipe.requirements.open("a") as listed:
        listed.write("no-such-package==1.0\n")
    with pytest.raises(SandboxError) as caught:
        fetch_wheels(recipe.requirements, HERE_AND_NOW, tmp_path / "site")
    assert str(caught.value) == (
        "pip cannot fetch the sandbox's packages: "
        "No matching distribution found for no-such-package==1.0. "
        "Check that pip reaches its package index."
    )


def test_a_list_of_packages_is_told_by_its_pins_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# why\n--no-index\nb==2  # because\nA==1\n")
    (tmp_path / "b.txt").write_text("A==1\nb==2\n")
    assert pinned_packages(tmp_path / "a.txt") == ("A==1", "b==2")
    assert pins_digest(tmp_path / "a.txt") == pins_digest(tmp_path / "b.txt")


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_every_package_of_an_image_is_pinned(recipe: ImageRecipe) -> None:
    assert all(len(pin.split("==")) == 2 for pin in pinned_packages(recipe.requirements))


def test_the_dockerfile_and_the_command_have_the_same_public_base() -> None:
    assert f"ARG BASE_IMAGE={BASE_IMAGE}\n" in (HERE / "Dockerfile").read_text()
