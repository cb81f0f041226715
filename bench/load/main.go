// Command load sends many requests of one kind to a Kubernetes API server, and prints the results as JSON.
//
// It reads the bearer token from its standard input, so that other users of the
// machine do not see it among the arguments.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func measure() error {
	address := flag.String("address", "", "host and port of the server")
	authority := flag.String("ca", "", "file with the certificate authority")
	operation := flag.String("op", "get", "create, get, patch, apply, list, watch or agents")
	namespace := flag.String("namespace", "default", "namespace of the objects")
	prefix := flag.String("prefix", "load", "what names start with")
	clients := flag.Int("clients", 1, "how many at once; with watch, how many writers")
	watchers := flag.Int("watchers", 100, "how many watch")
	objects := flag.Int64("objects", 100, "how many objects there are to choose from")
	first := flag.Int64("first", 0, "number of the first request")
	count := flag.Int64("count", 1<<40, "stop after this many requests")
	limit := flag.Duration("time", 3*time.Second, "stop after this long")
	flag.Parse()

	input := bufio.NewReader(os.Stdin)
	token, err := input.ReadString('\n')
	if err != nil {
		return fmt.Errorf("no token on standard input: %w", err)
	}
	pem, err := os.ReadFile(*authority)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %s", *authority)
	}
	to := target{
		address: *address,
		token:   strings.TrimSpace(token),
		config:  &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}},
	}

	if *operation == "agents" {
		return attend(to, *clients, input)
	}
	var seen result
	if *operation == "watch" {
		seen, err = fanOut(to, *namespace, *prefix, *watchers, *clients, *count, *limit)
	} else if make, known := makers(*namespace, *prefix, *objects)[*operation]; known {
		seen, err = run(to, *clients, *count, *limit, *first, make)
	} else {
		err = fmt.Errorf("unknown operation %q", *operation)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}
