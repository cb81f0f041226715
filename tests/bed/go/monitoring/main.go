// Command monitoring checks objects for the Prometheus operator, and expressions of a dashboard, from standard input.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

type input struct {
	Rule        json.RawMessage `json:"rule"`
	Monitor     json.RawMessage `json:"monitor"`
	Expressions []string        `json:"expressions"`
}

func main() {
	var given input
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		fail("input", err)
	}
	var rule monitoring.PrometheusRule
	if err := yaml.UnmarshalStrict(given.Rule, &rule); err != nil {
		fail("PrometheusRule", err)
	}
	var monitor monitoring.ServiceMonitor
	if err := yaml.UnmarshalStrict(given.Monitor, &monitor); err != nil {
		fail("ServiceMonitor", err)
	}
	groups, err := yaml.Marshal(rule.Spec)
	if err != nil {
		fail("rules", err)
	}
	if _, errs := rulefmt.Parse(groups, false); len(errs) > 0 {
		fail("rules", errs[0])
	}
	for _, text := range given.Expressions {
		if _, err := parser.ParseExpr(strings.ReplaceAll(text, "$__rate_interval", "5m")); err != nil {
			fail(text, err)
		}
	}
	fmt.Printf("%d groups, %d expressions\n", len(rule.Spec.Groups), len(given.Expressions))
}

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}
