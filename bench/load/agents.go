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
	// Servers close connections that are not used for a minute and a half, or sooner.
	unused = 20 * time.Second
	// How often a watch that ended is taken up again before that is given up.
	tries = 50
)

// A work is what an agent reads of a ManifestWork.
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

// attend stands for the agents of a whole fleet until standard input ends: each says at once how its works do.
//
// A work succeeds unless the `phase` in its first manifest is `working`, which
// takes for ever, or `bad`, which fails. Nothing is applied anywhere.
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

// following opens a watch of all works, which begins with those there are.
func following(t target) (*connection, error) {
	stream, err := open(t, works+"manifestworks?watch=1&timeoutSeconds=7200")
	if err != nil {
		return nil, err
	}
	// However long nothing happens.
	return stream, stream.tls.SetDeadline(time.Time{})
}

// listen hands on every work whose agent has not said yet how it does.
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

// answer says how works do, one after another.
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
		// Whoever has gone meanwhile need not be told.
		if status != 200 && status != 404 {
			return fmt.Errorf("%s was answered with %d", path, status)
		}
	}
	return nil
}

// said returns the patch with which an agent says how a work does.
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
