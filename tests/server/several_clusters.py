"""Servers with several clusters."""

from pathlib import Path

from lamina.app import App
from lamina.client.client import Client
from lamina.settings import Settings


def client_of(app: App, name: str) -> Client:
    return next(cluster for cluster in app.clusters if cluster.name == name).client()


def persistent_app(folder: Path, *clusters: str) -> App:
    return App(Settings(data=folder, port=0, simulate="off", clusters=clusters))
