package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const (
	works = "/apis/work.open-cluster-management.io/v1/"
	// Below the idle timeout of servers, which is 90 seconds or less.
	unused = 20 * time.Second
	// The number of retries of a watch that ends.
	tries = 50
)

// A work has the fields of a ManifestWork that an agent reads.
type work struct {
	Metadata struct {
		Name              string  `json:"name"`
		Namespace         string  `json:"namespace"`
		Generation        int64   `json:"generation"`
		ResourceVersion   string  `json:"resourceVersion"`
		DeletionTimestamp *string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Workload struct {
			Manifests []struct {
				Data map[string]string `json:"data"`
			} `json:"manifests"`
		} `json:"workload"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type               string `json:"type"`
			ObservedGeneration int64  `json:"observedGeneration"`
		} `json:"conditions"`
	} `json:"status"`
}

// attend simulates the agents of a fleet until standard input ends: it reports the status of every work at once.
//
// A work succeeds unless the `phase` in its first manifest is `working`, which
// never completes, or `bad`, which fails. Nothing is applied.
func attend(t target, clients int, input *bufio.Reader) error {
	unsaid := make(chan work, 1<<16)
	failed := make(chan error, clients+1)
	for range clients {
		go func() { failed <- answer(t, unsaid) }()
	}
	stream, err := following(t)
	if err != nil {
		return err
	}
	go func() { failed <- listen(t, stream, unsaid) }()
	ended := make(chan struct{})
	go func() {
		for {
			if _, err := input.ReadByte(); err != nil {
				close(ended)
				return
			}
		}
	}()
	fmt.Fprintln(os.Stdout, "ready")
	select {
	case err := <-failed:
		return err
	case <-ended:
		return nil
	}
}

// following opens a watch of all works, with initial events.
func following(t target) (*connection, error) {
	stream, err := open(t, works+"manifestworks?watch=1&timeoutSeconds=7200")
	if err != nil {
		return nil, err
	}
	// No timeout: a watch may be idle.
	return stream, stream.tls.SetDeadline(time.Time{})
}

// listen passes on every work without a status for its generation.
//
// A real server ends the watches of a kind when its definition changes.
func listen(t target, stream *connection, unsaid chan<- work) error {
	for {
		lines := json.NewDecoder(&chunks{reader: stream.reader})
		for {
			var event struct {
				Type   string `json:"type"`
				Object work   `json:"object"`
			}
			if err := lines.Decode(&event); err != nil || event.Type == "ERROR" {
				break
			}
			one := event.Object
			if event.Type != "DELETED" && one.Metadata.DeletionTimestamp == nil && !one.isSaid() {
				unsaid <- one
			}
		}
		stream.close()
		var err error
		for range tries {
			time.Sleep(100 * time.Millisecond)
			if stream, err = following(t); err == nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("works can no longer be watched: %w", err)
		}
	}
}

func (w *work) isSaid() bool {
	for _, one := range w.Status.Conditions {
		if one.Type == "Applied" {
			return one.ObservedGeneration == w.Metadata.Generation
		}
	}
	return false
}

// answer writes the status of works, one after another.
func answer(t target, unsaid <-chan work) error {
	var c *connection
	var last time.Time
	for one := range unsaid {
		if c != nil && time.Since(last) > unused {
			c.close()
			c = nil
		}
		if c == nil {
			fresh, err := dial(t)
			if err != nil {
				return err
			}
			c = fresh
		}
		last = time.Now()
		path := works + "namespaces/" + one.Metadata.Namespace + "/manifestworks/" + one.Metadata.Name + "/status"
		status, _, err := c.do("PATCH", path, mergeType, one.said(time.Now()))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		// The work was deleted meanwhile.
		if status != 200 && status != 404 {
			return fmt.Errorf("%s was answered with %d", path, status)
		}
	}
	return nil
}

// said returns the patch of the status of a work.
func (w *work) said(now time.Time) []byte {
	phase := ""
	if len(w.Spec.Workload.Manifests) > 0 {
		phase = w.Spec.Workload.Manifests[0].Data["phase"]
	}
	moment := now.UTC().Format(time.RFC3339)
	condition := func(name string, holds bool) map[string]any {
		status := "False"
		if holds {
			status = "True"
		}
		return map[string]any{
			"type": name, "status": status, "reason": "Said", "message": phase,
			"lastTransitionTime": moment, "observedGeneration": w.Metadata.Generation,
		}
	}
	conditions := []any{
		condition("Applied", true), condition("Available", true),
		condition("Progressing", phase == "working" || phase == "bad"), condition("Degraded", phase == "bad"),
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		panic(err)
	}
	return body
}
