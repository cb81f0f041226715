package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// The timeout of the last events after the last write.
const straggling = 15 * time.Second

var (
	mark   = []byte(`"sent":"`)
	origin = time.Now()
)

// A watcher reads one watch and counts its events.
type watcher struct {
	stream *connection
	count  atomic.Int64
	ended  atomic.Bool
	last   time.Time
}

// fanOut watches the objects that writers create, and returns the latencies of the events.
//
// The object has the time of its request, so a latency lasts from just before the
// write is sent until a watcher has the whole event.
func fanOut(t target, namespace, prefix string, watchers, writers int, count int64, limit time.Duration) (result, error) {
	all := "/api/v1/namespaces/" + namespace + "/configmaps"
	version, err := versionOf(t, all)
	if err != nil {
		return result{}, err
	}
	following := make([]*watcher, watchers)
	for number := range following {
		stream, err := open(t, all+"?watch=1&labelSelector=fan%3Dout&resourceVersion="+version)
		if err != nil {
			return result{}, err
		}
		defer stream.close()
		following[number] = &watcher{stream: stream}
	}
	arrivals := newSeen(watchers)
	var reading sync.WaitGroup
	for number, one := range following {
		reading.Go(func() { one.follow(number, arrivals) })
	}
	started := time.Now()
	writes, err := run(t, writers, count, limit, 0, func(n int64) (string, string, string, []byte) {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%d","labels":{"fan":"out"}},`+
			`"data":{"sent":"%d","filler":%q}}`, prefix, n, time.Since(origin).Nanoseconds(), filler)
		return "POST", all, jsonType, []byte(body)
	})
	for deadline := time.Now().Add(straggling); err == nil && time.Now().Before(deadline); {
		if settled(following, writes.Requests) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, one := range following {
		// Ends reads that wait for an event.
		_ = one.stream.tls.SetReadDeadline(time.Now())
	}
	reading.Wait()
	if err != nil {
		return result{}, err
	}
	end, lost := started, 0
	for _, one := range following {
		if one.last.After(end) {
			end = one.last
		}
		if one.count.Load() < writes.Requests {
			lost++
		}
	}
	answer := arrivals.result(end.Sub(started))
	answer.Writes, answer.Errors, answer.Closed = writes.Requests, writes.Errors, lost
	return answer, nil
}

// settled returns whether every watcher has all events or has been closed.
func settled(following []*watcher, expected int64) bool {
	for _, one := range following {
		if one.count.Load() < expected && !one.ended.Load() {
			return false
		}
	}
	return true
}

// open starts a watch.
func open(t target, path string) (*connection, error) {
	c, err := dial(t)
	if err != nil {
		return nil, err
	}
	if err := c.send("GET", path, "", nil); err != nil {
		return nil, err
	}
	found, err := c.head()
	if err != nil {
		return nil, err
	}
	if found.status != 200 || !found.chunked {
		return nil, fmt.Errorf("the watch was answered with %d", found.status)
	}
	return c, nil
}

// follow reads events until the stream ends.
func (w *watcher) follow(number int, arrivals *seen) {
	defer w.ended.Store(true)
	lines := bufio.NewReaderSize(&chunks{reader: w.stream.reader}, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		_, digits, found := bytes.Cut(line, mark)
		if !found {
			continue
		}
		sent, err := strconv.ParseInt(string(digits[:bytes.IndexByte(digits, '"')]), 10, 64)
		if err != nil {
			return
		}
		w.last = time.Now()
		arrivals.add(number, w.last.Sub(origin)-time.Duration(sent), 200, int64(len(line)), nil)
		w.count.Add(1)
	}
}

// versionOf returns the resourceVersion of a list, to watch from.
func versionOf(t target, path string) (string, error) {
	c, err := dial(t)
	if err != nil {
		return "", err
	}
	defer c.close()
	if err := c.send("GET", path+"?limit=1", "", nil); err != nil {
		return "", err
	}
	found, err := c.head()
	if err != nil {
		return "", err
	}
	var body io.Reader = io.LimitReader(c.reader, found.length)
	if found.chunked {
		body = &chunks{reader: c.reader}
	}
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return "", err
	}
	return list.Metadata.ResourceVersion, nil
}
