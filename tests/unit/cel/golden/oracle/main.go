// Command oracle compiles CEL expressions with cel-go and with Kubernetes' own compiler of rules.
//
// It reads one question a line, as JSON, and writes one answer a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/ext"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	rules "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// A question is an expression, and either variables or the schema of self.
type question struct {
	Environment string            `json:"environment"`
	Variables   map[string]string `json:"variables"`
	Expression  string            `json:"expression"`
	Schema      json.RawMessage   `json:"schema"`
	Resource    bool              `json:"resource"`
	ParseOnly   bool              `json:"parseOnly"`
	Object      json.RawMessage   `json:"object"`
	OldObject   json.RawMessage   `json:"oldObject"`
}

type answer struct {
	Error       string   `json:"error,omitempty"`
	Type        string   `json:"type,omitempty"`
	Cost        []uint64 `json:"cost,omitempty"`
	Cardinality uint64   `json:"cardinality,omitempty"`
	Refusal     string   `json:"refusal,omitempty"`
	Spent       int64    `json:"spent,omitempty"`
}

var kubernetes = environment.MustBaseEnvSet(version.MajorMinor(1, 35))

type noSizes struct{}

func (noSizes) EstimateSize(checker.AstNode) *checker.SizeEstimate { return nil }
func (noSizes) EstimateCallCost(_, _ string, _ *checker.AstNode, _ []checker.AstNode) *checker.CallEstimate {
	return nil
}

// typeReader reads types as cel-go prints them.
type typeReader struct {
	text string
	at   int
}

func (r *typeReader) read() *cel.Type {
	start := r.at
	for r.at < len(r.text) && !strings.ContainsRune("(),", rune(r.text[r.at])) {
		r.at++
	}
	name := strings.TrimSpace(r.text[start:r.at])
	var params []*cel.Type
	if r.at < len(r.text) && r.text[r.at] == '(' {
		for r.text[r.at] != ')' {
			r.at++ // the parenthesis, or a comma
			params = append(params, r.read())
		}
		r.at++
	}
	switch name {
	case "list":
		return cel.ListType(params[0])
	case "map":
		return cel.MapType(params[0], params[1])
	case "optional_type":
		return cel.OptionalType(params[0])
	case "wrapper":
		return cel.NullableType(params[0])
	}
	return map[string]*cel.Type{
		"int": cel.IntType, "uint": cel.UintType, "double": cel.DoubleType, "string": cel.StringType,
		"bytes": cel.BytesType, "bool": cel.BoolType, "null": cel.NullType, "dyn": cel.DynType,
		"duration": cel.DurationType, "timestamp": cel.TimestampType,
	}[name]
}

func environmentOf(q question) (*cel.Env, error) {
	var options []cel.EnvOption
	for name, text := range q.Variables {
		options = append(options, cel.Variable(name, (&typeReader{text: text}).read()))
	}
	if q.Environment == "kubernetes" {
		return kubernetes.NewExpressionsEnv().Extend(options...)
	}
	options = append(options,
		cel.OptionalTypes(), cel.EnableIdentifierEscapeSyntax(), cel.CrossTypeNumericComparisons(true),
		ext.Strings(), ext.Math(), ext.Lists(), ext.Sets(), ext.Encoders(), ext.Bindings(),
		ext.TwoVarComprehensions(), ext.Regex())
	return cel.NewEnv(options...)
}

func ofRule(q question) (a answer, err error) {
	given, internal := &v1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	if err = json.Unmarshal(q.Schema, given); err != nil {
		return
	}
	if err = v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(given, internal, nil); err != nil {
		return
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return
	}
	structural.XValidations = v1.ValidationRules{{Rule: q.Expression}}
	compiled, err := rules.Compile(structural, model.SchemaDeclType(structural, q.Resource), limits.PerCallLimit,
		kubernetes, rules.NewExpressionsEnvLoader())
	if err != nil {
		return
	}
	if compiled[0].Error != nil {
		a.Error = compiled[0].Error.Detail
		return
	}
	a.Cost, a.Cardinality = []uint64{compiled[0].MaxCost}, compiled[0].MaxCardinality
	if len(q.Object) > 0 {
		err = evaluated(&a, q, structural)
	}
	return
}

func evaluated(a *answer, q question, structural *schema.Structural) error {
	var object, old any
	if err := utiljson.Unmarshal(q.Object, &object); err != nil {
		return err
	}
	if err := utiljson.Unmarshal(q.OldObject, &old); err != nil {
		return err
	}
	validator := rules.NewValidator(structural, q.Resource, limits.PerCallLimit)
	refusals, left := validator.Validate(context.Background(), field.NewPath("root"), structural, object, old,
		limits.RuntimeCELCostBudget)
	if len(refusals) > 0 {
		a.Refusal = refusals[0].Error()
	}
	a.Spent = limits.RuntimeCELCostBudget - left
	return nil
}

func of(q question) (a answer, err error) {
	if len(q.Schema) > 0 {
		return ofRule(q)
	}
	env, err := environmentOf(q)
	if err != nil {
		return
	}
	compile := env.Compile
	if q.ParseOnly {
		compile = env.Parse
	}
	compiled, issues := compile(q.Expression)
	if issues != nil && issues.Err() != nil {
		a.Error = issues.String()
		return
	}
	if q.ParseOnly {
		return
	}
	a.Type = checker.FormatCELType(compiled.OutputType())
	var estimator checker.CostEstimator = noSizes{}
	if q.Environment == "kubernetes" {
		estimator = &library.CostEstimator{}
	}
	cost, err := env.EstimateCost(compiled, estimator)
	a.Cost = []uint64{cost.Min, cost.Max}
	return
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			panic(err)
		}
		a, err := of(q)
		if err != nil {
			panic(fmt.Errorf("%s: %w", q.Expression, err))
		}
		if err := answers.Encode(a); err != nil {
			panic(err)
		}
	}
}
