"""The tables are generated from Go and .proto files; here, of a made-up module."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from tools.definitions import definitions
from tools.golang import documentation, enums, structs
from tools.protos import messages
from tools.sources import Sources

PACKAGE = "io.k8s.api.toys.v1"
TYPES = """
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	other "k8s.io/api/other/v1"
)

// Toy is played with.
type Toy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	Spec ToySpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

type ToySpec struct {
	Common `json:",inline" protobuf:"bytes,1,opt,name=common"`

	// +default="red"
	Colour *Colour `json:"colour,omitempty" protobuf:"bytes,2,opt,name=colour,casttype=Colour"`
	Parts  []Part  `json:"parts" protobuf:"bytes,3,rep,name=parts"`
	// +default=ref(Round)
	Shape Shape             `json:"shape,omitempty" protobuf:"bytes,4,opt,name=shape"`
	Notes map[string]string `json:"notes,omitempty" protobuf:"bytes,5,rep,name=notes"`
	Bought metav1.Time      `json:"bought,omitempty,omitzero" protobuf:"bytes,6,opt,name=bought"`
	Sold   metav1.Time      `json:"sold,omitempty" protobuf:"bytes,7,opt,name=sold"`
}

type Common struct {
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

type Part struct {
	Count int32 `json:"count,omitempty" protobuf:"varint,1,opt,name=count"`
}

// Colour is what it looks like.
// +enum
type Colour string

const (
	// ColourRed is the colour
	// of fire.
	ColourRed Colour = "red"

	ColourBlue Colour = "blue"
	ColourSame = Colour(other.Green)
)

type Shape string

const (
	Round Shape = "round"
)
"""
PROTO = """
message Toy {
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;

  // What it is.
  optional ToySpec spec = 2;
}

message ToySpec {
  optional Common common = 1;

  optional string colour = 2;

  repeated Part parts = 3;

  optional string shape = 4;

  map<string, string> notes = 5;

  optional .k8s.io.apimachinery.pkg.apis.meta.v1.Time bought = 6;

  optional .k8s.io.apimachinery.pkg.apis.meta.v1.Time sold = 7;
}

message Common {
  optional string name = 1;
}

message Part {
  optional int32 count = 1;
}
"""
META_TYPES = """
type ObjectMeta struct {
}

type Time struct {
	time.Time `protobuf:"-"`
}

func (t Time) MarshalJSON() ([]byte, error) {
}
"""
META_PROTO = """
message ObjectMeta {
}

message Time {
  optional int64 seconds = 1;
}
"""
STRING = {"type": ["string", "null"]}
DEFINITIONS: dict[str, Any] = {
    f"{PACKAGE}.Toy": {
        "type": ["object", "null"],
        "properties": {
            "kind": {"type": "string", "enum": ["Toy"]},
            "spec": {"$ref": f"#/$defs/{PACKAGE}.ToySpec", "description": "What it is."},
        },
        "x-kubernetes-group-version-kind": [{"group": "toys", "kind": "Toy", "version": "v1"}],
    },
    f"{PACKAGE}.ToySpec": {
        "type": ["object", "null"],
        "properties": {
            "name": {"type": "string"},
            "colour": {**STRING, "description": "How it looks."},
            "parts": {"type": "array", "items": {"$ref": f"#/$defs/{PACKAGE}.Part"}},
            "shape": STRING,
            "notes": {"type": "object", "additionalProperties": STRING},
        },
    },
    f"{PACKAGE}.Part": {"type": "object", "properties": {"count": {"type": ["integer", "null"]}}},
}


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    files = {
        "api/toys/v1/types.go": TYPES,
        "api/toys/v1/generated.proto": PROTO,
        "api/other/v1/types.go": 'const (\n\tGreen Shade = "green"\n)\n',
        "apimachinery/pkg/apis/meta/v1/types.go": META_TYPES,
        "apimachinery/pkg/apis/meta/v1/generated.proto": META_PROTO,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    modules = {module: tmp_path / module for module in ("api", "apimachinery")}
    return Sources(definitions=DEFINITIONS, modules=modules, sums={})


def test_fields_are_read_with_their_tags(sources: Sources) -> None:
    fields = {field.json: field for field in structs(sources.folder(PACKAGE))["ToySpec"]}

    assert fields["colour"].pointer
    assert fields["colour"].default == '"red"'
    assert (fields["parts"].omitempty, fields["parts"].number) == (False, 3)
    assert fields[""].inlined
    assert fields["bought"].imported == "k8s.io/apimachinery/pkg/apis/meta/v1"


def test_messages_say_what_becomes_of_a_zero(sources: Sources) -> None:
    made = messages(sources, [f"{PACKAGE}.Toy"])

    assert made[f"{PACKAGE}.Toy"] == (
        "1 metadata! io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta;2 spec! ToySpec"
    )
    assert made[f"{PACKAGE}.ToySpec"] == (
        "1 common^ Common;2 colour? string;3 parts! []Part;4 shape string;5 notes map<string,string>;"
        "6 bought io.k8s.apimachinery.pkg.apis.meta.v1.Time;7 sold! io.k8s.apimachinery.pkg.apis.meta.v1.Time"
    )
    assert made[f"{PACKAGE}.Part"] == "1 count int32"


def test_enumerations_are_read_with_what_is_said_of_them(sources: Sources) -> None:
    found = enums(sources.folder(PACKAGE), sources.imported)

    assert found == {"Colour": {"red": "is the colour of fire.", "blue": "", "green": ""}}


def test_definitions_are_those_of_a_server(sources: Sources) -> None:
    made = definitions(sources, [f"{PACKAGE}.Toy"])

    assert made[f"{PACKAGE}.Toy"]["properties"] == {
        "kind": {"type": "string"},
        "spec": {
            "allOf": [{"$ref": f"#/components/schemas/{PACKAGE}.ToySpec"}],
            "description": "What it is.",
            "default": {},
        },
    }
    spec = made[f"{PACKAGE}.ToySpec"]["properties"]
    assert spec["name"] == {"type": "string", "default": ""}
    assert spec["shape"] == {"type": "string", "default": "round"}
    assert spec["notes"] == {"type": "object", "additionalProperties": {"type": "string", "default": ""}}
    assert spec["parts"]["items"] == {
        "allOf": [{"$ref": f"#/components/schemas/{PACKAGE}.Part"}],
        "default": {},
    }
    assert spec["colour"]["default"] == "red"
    assert spec["colour"]["enum"] == ["blue", "green", "red"]
    assert spec["colour"]["description"] == (
        'How it looks.\n\nPossible enum values:\n - `"blue"`\n - `"green"`\n - `"red"` is the colour of fire.'
    )


def test_sentences_about_fields_are_read(tmp_path: Path) -> None:
    (tmp_path / "types_swagger_doc_generated.go").write_text(
        'var map_Options = map[string]string{\n\t"":     "Options are chosen.",\n\t"dry": "Say \\"no\\".",\n}\n'
    )

    assert documentation(tmp_path) == {"Options": {"": "Options are chosen.", "dry": 'Say "no".'}}


def test_tables_are_compressed_json() -> None:
    from lamina.server.kinds.builtin.tables import DATA

    for path in DATA.glob("*.z"):
        assert zlib.decompress(path.read_bytes())[:1] == b"{"
    assert "Apache License, Version 2.0" in (DATA / "PROVENANCE.txt").read_text()
