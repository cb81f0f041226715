package main

import (
	"slices"
	"syscall"
	"time"
)

// seen has the results of clients; each client writes to its own element, without locks.
type seen struct {
	clients []onlooker
	cpu     time.Duration
}

type onlooker struct {
	times    []time.Duration
	bytes    int64
	failures int64
	// Pads the element to a cache line.
	_ [64]byte
}

// A result is printed as JSON.
type result struct {
	Requests  int64   `json:"requests"`
	Errors    int64   `json:"errors"`
	Seconds   float64 `json:"seconds"`
	Rate      float64 `json:"rate"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Bytes     int64   `json:"bytes"`
	ClientCPU float64 `json:"client_cpu_us"`
	Writes    int64   `json:"writes,omitempty"`
	Closed    int     `json:"closed,omitempty"`
}

func newSeen(clients int) *seen {
	return &seen{clients: make([]onlooker, clients), cpu: ownCPU()}
}

func (s *seen) add(client int, took time.Duration, status int, size int64, err error) {
	one := &s.clients[client]
	if err != nil || status < 200 || status > 299 {
		one.failures++
		return
	}
	one.times = append(one.times, took)
	one.bytes += size
}

func (s *seen) result(elapsed time.Duration) result {
	var all []time.Duration
	var r result
	for _, one := range s.clients {
		all = append(all, one.times...)
		r.Bytes += one.bytes
		r.Errors += one.failures
	}
	r.Requests = int64(len(all))
	r.Seconds = elapsed.Seconds()
	if len(all) == 0 {
		return r
	}
	slices.Sort(all)
	milliseconds := func(share float64) float64 {
		return float64(all[int(share*float64(len(all)-1))].Microseconds()) / 1000
	}
	r.P50, r.P99 = milliseconds(0.50), milliseconds(0.99)
	r.Rate = float64(len(all)) / elapsed.Seconds()
	r.ClientCPU = float64((ownCPU() - s.cpu).Microseconds()) / float64(len(all))
	return r
}

// ownCPU returns the processor time this process has used.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
