package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A maker returns the request with a number: method, path, content type, body.
type maker func(number int64) (method, path, contentType string, body []byte)

const (
	jsonType  = "application/json"
	mergeType = "application/merge-patch+json"
	applyType = "application/apply-patch+yaml"
	// About half a kilobyte as the server returns it.
	filler = "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"
)

func object(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"load"}},`+
		`"data":{"value":%q,"filler":%q}}`, name, value, filler)
}

// makers returns a maker for each kind of request, for the objects of one namespace.
func makers(namespace, prefix string, objects int64) map[string]maker {
	all := "/api/v1/namespaces/" + namespace + "/configmaps"
	name := func(number int64) string { return fmt.Sprintf("%s-%d", prefix, number%objects) }
	return map[string]maker{
		"create": func(n int64) (string, string, string, []byte) {
			return "POST", all, jsonType, []byte(object(fmt.Sprintf("%s-%d", prefix, n), "0"))
		},
		"get": func(n int64) (string, string, string, []byte) {
			return "GET", all + "/" + name(n), "", nil
		},
		"patch": func(n int64) (string, string, string, []byte) {
			return "PATCH", all + "/" + name(n), mergeType, fmt.Appendf(nil, `{"data":{"value":"p%d"}}`, n)
		},
		"apply": func(n int64) (string, string, string, []byte) {
			body := []byte(object(name(n), fmt.Sprintf("a%d", n)))
			return "PATCH", all + "/" + name(n) + "?fieldManager=load&force=true", applyType, body
		},
		"list": func(int64) (string, string, string, []byte) {
			return "GET", all, "", nil
		},
	}
}

// run sends requests with several clients until count are sent or time is up, and returns the results.
func run(t target, clients int, count int64, limit time.Duration, first int64, make maker) (result, error) {
	var next atomic.Int64
	next.Store(first - 1)
	seen := newSeen(clients)
	connections := []*connection{}
	for range clients {
		c, err := dial(t)
		if err != nil {
			return result{}, err
		}
		defer c.close()
		connections = append(connections, c)
	}
	started := time.Now()
	var wait sync.WaitGroup
	for client, c := range connections {
		wait.Go(func() {
			for time.Since(started) < limit {
				number := next.Add(1)
				if number >= first+count {
					return
				}
				method, path, contentType, body := make(number)
				began := time.Now()
				status, size, err := c.do(method, path, contentType, body)
				seen.add(client, time.Since(began), status, size, err)
				if err != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	return seen.result(time.Since(started)), nil
}
