package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Spec is one request as a driver sees it.
type Spec struct {
	Stream      bool   `json:"stream"`
	RID         string `json:"rid,omitempty"`          // put into the prompt as "rid=<RID>" when set
	CancelAfter int    `json:"cancel_after,omitempty"` // close the request after this many tokens; 0 = never
	Hold        bool   `json:"hold,omitempty"`         // return after the first token and leave the stream open
}

// Result is what became of it. Times are UnixNano on this machine's clock.
type Result struct {
	Start  int64   `json:"start"`
	First  int64   `json:"first"`  // first token (stream) or whole answer
	End    int64   `json:"end"`    // last byte
	Closed int64   `json:"closed"` // when the client let go, for a cancelled request
	Tokens int     `json:"tokens"` // timestamps seen
	Bytes  int64   `json:"bytes"`  // response body bytes
	Added  []int64 `json:"added"`  // per token: nanoseconds from the upstream's write to its arrival here
	RID    string  `json:"rid,omitempty"`
	Err    string  `json:"err,omitempty"`
}

// Driver is one client connection (or whatever a protocol calls it), used by
// one goroutine at a time. Add a protocol by implementing it and naming it in
// newDriver, or as a program behind the exec driver.
type Driver interface {
	Do(Spec) Result
	Close() // drops the connection and any stream held open
}

func newDriver(o *options) (Driver, error) {
	switch o.Proto {
	case "openai", "ollama", "embed", "lmsp":
		return newHTTPDriver(o)
	case "exec":
		return newExecDriver(o)
	}
	return nil, fmt.Errorf("unknown protocol %q", o.Proto)
}

// stampScanner finds "@" + 19 digits in a byte stream cut anywhere.
type stampScanner struct {
	digits int // -1: outside
	value  int64
}

func (s *stampScanner) scan(b []byte, each func(int64)) {
	for len(b) > 0 {
		if s.digits < 0 {
			i := bytes.IndexByte(b, '@')
			if i < 0 {
				return
			}
			b = b[i+1:]
			s.digits, s.value = 0, 0
			continue
		}
		i := 0
		for i < len(b) && s.digits < 19 && b[i]-'0' < 10 {
			s.value = s.value*10 + int64(b[i]-'0')
			s.digits++
			i++
		}
		if s.digits == 19 {
			each(s.value)
			s.digits = -1
		} else if i < len(b) {
			s.digits = -1
		}
		b = b[i:]
	}
}

// execDriver runs one child per driver (so one per concurrent request slot).
// It gets the run's options as one JSON line on stdin, then one Spec per line,
// and answers each with one Result line on stdout.
type execDriver struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newExecDriver(o *options) (Driver, error) {
	cmd := exec.Command("/bin/sh", "-c", "exec "+o.Exec)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &execDriver{cmd, in, bufio.NewReaderSize(out, 1<<20)}
	return d, json.NewEncoder(in).Encode(map[string]any{"url": o.URL, "model": o.Model, "body_bytes": o.BodyBytes})
}

func (d *execDriver) Do(s Spec) (r Result) {
	if err := json.NewEncoder(d.in).Encode(s); err != nil {
		r.Err = err.Error()
		return r
	}
	line, err := d.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

func (d *execDriver) Close() {
	d.in.Close()
	d.cmd.Process.Kill()
	d.cmd.Wait()
}
