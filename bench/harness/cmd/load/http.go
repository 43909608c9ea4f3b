package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// httpDriver is a bare HTTP/1.1 client on one kept-alive connection. It
// decodes only what the figures need: framing, status, timestamps, the end
// mark of the stream.
type httpDriver struct {
	o       *options
	addr    string
	path    string
	host    string
	conn    *timedConn
	br      *bufio.Reader
	req     []byte // last request built
	buf     []byte
	static  bool
	scanner stampScanner
}

// timedConn notes when the last read returned.
type timedConn struct {
	net.Conn
	at int64
}

func (c *timedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.at = time.Now().UnixNano()
	return n, err
}

func newHTTPDriver(o *options) (Driver, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	host := u.Host
	if u.Port() == "" {
		host += ":80"
	}
	path := o.Path
	if path == "" {
		path = map[string]string{"openai": "/v1/chat/completions", "ollama": "/api/chat", "embed": "/v1/embeddings", "lmsp": "/lmsp/v1/responses"}[o.Proto]
	}
	return &httpDriver{o: o, addr: host, host: u.Host, path: strings.TrimRight(u.Path, "/") + path, buf: make([]byte, 32<<10)}, nil
}

func (d *httpDriver) Close() {
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
}

func (d *httpDriver) dial() error {
	c, err := net.DialTimeout("tcp", d.addr, 10*time.Second)
	if err != nil {
		return err
	}
	d.conn = &timedConn{Conn: c}
	if d.br == nil {
		size := 32 << 10
		if d.o.IdleStreams > 0 {
			size = 4 << 10
		}
		d.br = bufio.NewReaderSize(d.conn, size)
	} else {
		d.br.Reset(d.conn)
	}
	return nil
}

func (d *httpDriver) build(s Spec) []byte {
	if d.static && s.RID == "" {
		return d.req
	}
	var text strings.Builder
	if s.RID != "" {
		text.WriteString("rid=" + s.RID + " ")
	}
	for text.Len() < d.o.BodyBytes {
		text.WriteString("Write a short summary of the text that follows. ")
	}
	prompt := text.String()
	if len(prompt) > d.o.BodyBytes && s.RID == "" {
		prompt = prompt[:d.o.BodyBytes]
	}
	var body string
	switch d.o.Proto {
	case "embed":
		inputs := strings.Repeat(fmt.Sprintf("%q,", prompt), d.o.EmbedInputs)
		body = fmt.Sprintf(`{"model":%q,"input":[%s]}`, d.o.Model, strings.TrimSuffix(inputs, ","))
	case "lmsp":
		body = fmt.Sprintf(`{"model":%q,"input":%q,"stream":%v}`, d.o.Model, prompt, s.Stream)
	default:
		extra := ""
		if d.o.Usage && s.Stream && d.o.Proto == "openai" {
			extra = `,"stream_options":{"include_usage":true}`
		}
		body = fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}],"stream":%v%s}`, d.o.Model, prompt, s.Stream, extra)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: */*\r\nUser-Agent: bench-load\r\n", d.path, d.host)
	for _, h := range d.o.Headers {
		b.WriteString(h + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	d.req = b.Bytes()
	d.static = s.RID == ""
	return d.req
}

var errStale = errors.New("kept-alive connection was closed")

func (d *httpDriver) Do(s Spec) (r Result) {
	req := d.build(s)
	r.RID = s.RID
	r.Start = time.Now().UnixNano()
	for try := 0; ; try++ {
		reused := d.conn != nil
		if !reused {
			if err := d.dial(); err != nil {
				r.Err = err.Error()
				return r
			}
		}
		err := d.exchange(req, s, &r)
		if err == nil {
			return r
		}
		d.Close()
		if err == errStale && reused && try == 0 {
			continue
		}
		r.Err = err.Error()
		r.End = time.Now().UnixNano()
		return r
	}
}

var errCancelled = errors.New("cancelled")

func (d *httpDriver) exchange(req []byte, s Spec, r *Result) error {
	d.conn.SetDeadline(time.Now().Add(d.o.Timeout))
	if _, err := d.conn.Write(req); err != nil {
		return errStale
	}
	line, err := d.br.ReadSlice('\n')
	if err != nil {
		if len(line) == 0 && (err == io.EOF || strings.Contains(err.Error(), "reset")) {
			return errStale
		}
		return err
	}
	if len(line) < 12 {
		return fmt.Errorf("bad status line %q", line)
	}
	status := string(line[9:12])
	length, chunked, closing := -1, false, false
	for {
		line, err = d.br.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		k, v, _ := bytes.Cut(line, []byte(":"))
		v = bytes.TrimSpace(v)
		switch {
		case bytes.EqualFold(k, []byte("content-length")):
			length, _ = strconv.Atoi(string(v))
		case bytes.EqualFold(k, []byte("transfer-encoding")):
			chunked = bytes.EqualFold(v, []byte("chunked"))
		case bytes.EqualFold(k, []byte("connection")):
			closing = bytes.EqualFold(v, []byte("close"))
		}
	}

	d.scanner.digits = -1
	done := false // the stream's own end mark was seen
	var tail [64]byte
	tailLen := 0
	var errText []byte
	stop := error(nil)
	keep := d.o.keepAdded
	take := func(b []byte) {
		if status != "200" && len(errText) < 300 {
			errText = append(errText, b...)
		}
		r.Bytes += int64(len(b))
		d.scanner.scan(b, func(ts int64) {
			r.Tokens++
			if r.First == 0 {
				r.First = d.conn.at
			}
			if keep {
				r.Added = append(r.Added, d.conn.at-ts)
			}
		})
		// keep the last 64 bytes, to look for the end mark
		if len(b) >= len(tail) {
			tailLen = copy(tail[:], b[len(b)-len(tail):])
		} else {
			if over := tailLen + len(b) - len(tail); over > 0 {
				copy(tail[:], tail[over:tailLen])
				tailLen -= over
			}
			tailLen += copy(tail[tailLen:], b)
		}
		if s.Hold && r.Tokens > 0 || s.CancelAfter > 0 && r.Tokens >= s.CancelAfter {
			stop = errCancelled
		}
	}
	pull := func(n int) error { // n < 0: to the end of the connection
		for n != 0 && stop == nil {
			want := d.buf
			if n > 0 && n < len(want) {
				want = want[:n]
			}
			m, err := d.br.Read(want)
			take(want[:m])
			if n > 0 {
				n -= m
			}
			if err != nil {
				if n < 0 && err == io.EOF {
					return nil
				}
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
		}
		return stop
	}
	switch {
	case chunked:
		for err == nil {
			line, err = d.br.ReadSlice('\n')
			if err != nil {
				break
			}
			size, _, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(";"))
			var n uint64
			n, err = strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
			if err != nil {
				break
			}
			if n == 0 {
				for {
					line, err = d.br.ReadSlice('\n')
					if err != nil || len(bytes.TrimRight(line, "\r\n")) == 0 {
						break
					}
				}
				break
			}
			if err = pull(int(n)); err != nil {
				break
			}
			if _, e := d.br.Discard(2); e != nil {
				err = e
			}
		}
	case length >= 0:
		err = pull(length)
	default:
		closing = true
		err = pull(-1)
	}
	if err == errCancelled {
		if s.Hold {
			return nil
		}
		r.Closed = time.Now().UnixNano()
		r.End = r.Closed
		d.Close()
		return nil
	}
	r.End = time.Now().UnixNano()
	if err != nil {
		return err
	}
	if closing {
		d.Close()
	}
	if status != "200" {
		return fmt.Errorf("status %s: %.200s", status, errText)
	}
	if s.Stream {
		t := tail[:tailLen]
		if d.o.Proto == "openai" {
			done = bytes.Contains(t, []byte("[DONE]"))
		} else {
			done = r.Bytes > 0 && bytes.HasSuffix(bytes.TrimSpace(t), []byte("}"))
		}
		if !done {
			return errors.New("stream ended without its end mark")
		}
		if d.o.Expect > 0 && r.Tokens != d.o.Expect {
			return fmt.Errorf("got %d tokens, expected %d", r.Tokens, d.o.Expect)
		}
	} else if r.First == 0 {
		r.First = r.End
	}
	return nil
}
