package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// A connection speaks HTTP/1.1 over TLS, one request at a time, and keeps alive.
//
// It does not use net/http, which would use more processor time for a request than
// the measured servers.
type connection struct {
	target target
	tls    *tls.Conn
	reader *bufio.Reader
	out    bytes.Buffer
}

// A target is a server with credentials.
type target struct {
	address string
	token   string
	config  *tls.Config
}

var errNotKept = errors.New("the server closed the connection")

func dial(t target) (*connection, error) {
	conn, err := tls.Dial("tcp", t.address, t.config)
	if err != nil {
		return nil, err
	}
	return &connection{target: t, tls: conn, reader: bufio.NewReaderSize(conn, 64<<10)}, nil
}

func (c *connection) close() { _ = c.tls.Close() }

// send writes one request.
func (c *connection) send(method, path, contentType string, body []byte) error {
	c.out.Reset()
	fmt.Fprintf(&c.out, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n",
		method, path, c.target.address, c.target.token)
	if body != nil {
		fmt.Fprintf(&c.out, "Content-Type: %s\r\nContent-Length: %d\r\n", contentType, len(body))
	}
	c.out.WriteString("\r\n")
	c.out.Write(body)
	if err := c.tls.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		return err
	}
	_, err := c.tls.Write(c.out.Bytes())
	return err
}

// do sends one request, reads the whole response and returns its status and size.
func (c *connection) do(method, path, contentType string, body []byte) (status int, size int64, err error) {
	if err = c.send(method, path, contentType, body); err != nil {
		return 0, 0, err
	}
	head, err := c.head()
	if err != nil {
		return 0, 0, err
	}
	if head.chunked {
		size, err = io.Copy(io.Discard, &chunks{reader: c.reader})
	} else {
		size, err = io.CopyN(io.Discard, c.reader, head.length)
	}
	if err == nil && head.closing {
		err = errNotKept
	}
	return head.status, size, err
}

// A head has the status and the framing of a response.
type head struct {
	status  int
	length  int64
	chunked bool
	closing bool
}

func (c *connection) head() (head, error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return head{}, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return head{}, fmt.Errorf("not an HTTP/1.1 answer: %q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return head{}, err
	}
	found := head{status: status}
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return head{}, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return found, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if found.length, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return head{}, err
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			found.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("connection")):
			found.closing = bytes.EqualFold(value, []byte("close"))
		}
	}
}

// chunks reads a body that comes in chunks, up to and including the last one.
type chunks struct {
	reader *bufio.Reader
	left   int64
	ended  bool
}

func (b *chunks) Read(into []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	if b.left == 0 {
		line, err := b.reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		size, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(";"))
		if b.left, err = strconv.ParseInt(string(size), 16, 64); err != nil {
			return 0, err
		}
		if b.left == 0 {
			b.ended = true
			_, err = b.reader.Discard(2)
			if err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
	}
	if int64(len(into)) > b.left {
		into = into[:b.left]
	}
	n, err := b.reader.Read(into)
	b.left -= int64(n)
	if err == nil && b.left == 0 {
		_, err = b.reader.Discard(2)
	}
	return n, err
}
