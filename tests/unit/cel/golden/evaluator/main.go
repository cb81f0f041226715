// Answers what Kubernetes' own CEL environment makes of an expression: its value, its error, its cost.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

type question struct {
	Expression string
	Variables  map[string]any
}

type reply struct {
	Refused string `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
	Type    string `json:"type,omitempty"`
	Value   string `json:"value,omitempty"`
	Cost    uint64 `json:"cost"`
}

func answer(asked question) reply {
	var options []cel.EnvOption
	for name := range asked.Variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 35)).Extend(
		environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options})
	if err != nil {
		panic(err)
	}
	env := set.NewExpressionsEnv()
	checked, issues := env.Compile(asked.Expression)
	if issues.Err() != nil {
		return reply{Refused: issues.Err().Error()}
	}
	program, err := env.Program(checked)
	if err != nil {
		return reply{Refused: err.Error()}
	}
	value, details, err := program.Eval(asked.Variables)
	found := reply{}
	if details != nil && details.ActualCost() != nil {
		found.Cost = *details.ActualCost()
	}
	if err != nil {
		found.Error = err.Error()
		return found
	}
	found.Type = value.Type().TypeName()
	found.Value = fmt.Sprintf("%v", value)
	return found
}

func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		real, _ := v.Float64()
		return real
	case map[string]any:
		for key, inner := range v {
			v[key] = plain(inner)
		}
	case []any:
		for place, inner := range v {
			v[place] = plain(inner)
		}
	}
	return value
}

// Reads one question a line, as JSON, and answers each with one line.
func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	in.UseNumber()
	out := json.NewEncoder(os.Stdout)
	for {
		var asked question
		if in.Decode(&asked) != nil {
			return
		}
		for name, value := range asked.Variables {
			asked.Variables[name] = plain(value)
		}
		if err := out.Encode(answer(asked)); err != nil {
			panic(err)
		}
	}
}
