// Command load drives a model gateway and prints one JSON object of figures.
// See the README beside go.mod for what each figure means.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type options struct {
	URL, Path, Proto, Model, Exec  string
	Headers                        []string
	Stream, Usage                  bool
	BodyBytes, EmbedInputs, Expect int
	C, N                           int
	Rate                           float64
	Duration, Warmup, Ramp         time.Duration
	Timeout                        time.Duration
	CancelAfter                    int
	IdleStreams                    int
	Settle                         time.Duration
	Control                        string
	keepAdded                      bool
}

type stringList []string

func (l *stringList) String() string     { return strings.Join(*l, ",") }
func (l *stringList) Set(s string) error { *l = append(*l, s); return nil }

type pct struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// percentiles of nanoseconds, reported in milliseconds
func percentiles(ns []int64) *pct {
	if len(ns) == 0 {
		return nil
	}
	slices.Sort(ns)
	at := func(p float64) float64 {
		i := int(p * float64(len(ns)-1))
		return float64(ns[i]) / 1e6
	}
	return &pct{len(ns), at(.5), at(.95), at(.99), float64(ns[len(ns)-1]) / 1e6}
}

// agg gathers one worker's results.
type agg struct {
	ok, tokens, bytes    int64
	ttft, latency, added []int64
	errs                 map[string]int
	closed               map[string]int64 // rid -> when the client closed
}

func (a *agg) take(r Result, due int64) {
	start := r.Start
	if due != 0 {
		start = due // open loop: from when it should have begun
	}
	if r.Err != "" {
		if a.errs == nil {
			a.errs = map[string]int{}
		}
		a.errs[r.Err]++
		return
	}
	a.ok++
	a.tokens += int64(r.Tokens)
	a.bytes += r.Bytes
	a.added = append(a.added, r.Added...)
	if r.First > 0 {
		a.ttft = append(a.ttft, r.First-start)
	}
	a.latency = append(a.latency, r.End-start)
	if r.Closed > 0 && r.RID != "" {
		if a.closed == nil {
			a.closed = map[string]int64{}
		}
		a.closed[r.RID] = r.Closed
	}
}

func (a *agg) merge(b *agg) {
	a.ok += b.ok
	a.tokens += b.tokens
	a.bytes += b.bytes
	a.ttft = append(a.ttft, b.ttft...)
	a.latency = append(a.latency, b.latency...)
	a.added = append(a.added, b.added...)
	for k, v := range b.errs {
		if a.errs == nil {
			a.errs = map[string]int{}
		}
		a.errs[k] += v
	}
	for k, v := range b.closed {
		if a.closed == nil {
			a.closed = map[string]int64{}
		}
		a.closed[k] = v
	}
}

func newRID() string { return fmt.Sprintf("%016x", rand.Uint64()) }

func (o *options) spec() Spec {
	s := Spec{Stream: o.Stream, CancelAfter: o.CancelAfter}
	if o.CancelAfter > 0 {
		s.RID = newRID()
	}
	return s
}

// closedLoop: C workers, each sending its next request when the last is done.
func closedLoop(o *options, c, n int, d time.Duration) (*agg, error) {
	var mu sync.Mutex
	left := n
	until := time.Now().Add(d)
	total := &agg{}
	var wg sync.WaitGroup
	for i := 0; i < c; i++ {
		drv, err := newDriver(o)
		if err != nil {
			return nil, err
		}
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			defer drv.Close()
			if o.Ramp > 0 {
				time.Sleep(o.Ramp * time.Duration(i) / time.Duration(c))
			}
			a := &agg{}
			for {
				if d > 0 && time.Now().After(until) {
					break
				}
				if n > 0 {
					mu.Lock()
					left--
					over := left < 0
					mu.Unlock()
					if over {
						break
					}
				}
				r := drv.Do(o.spec())
				a.take(r, 0)
				if r.Err != "" {
					time.Sleep(5 * time.Millisecond)
				}
			}
			mu.Lock()
			total.merge(a)
			mu.Unlock()
		}(i)
	}
	wg.Wait()
	return total, nil
}

// openLoop: requests begin on a fixed schedule whatever the server does; at
// most C are under way, and time spent waiting for a slot counts as latency.
func openLoop(o *options) (*agg, error) {
	slots := make(chan Driver, o.C)
	for i := 0; i < o.C; i++ {
		d, err := newDriver(o)
		if err != nil {
			return nil, err
		}
		slots <- d
	}
	total := &agg{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	for i := 0; o.N == 0 || i < o.N; i++ {
		at := begin.Add(time.Duration(float64(i) / o.Rate * 1e9))
		if o.Duration > 0 && at.Sub(begin) > o.Duration {
			break
		}
		time.Sleep(time.Until(at))
		drv := <-slots
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := drv.Do(o.spec())
			mu.Lock()
			total.take(r, at.UnixNano())
			mu.Unlock()
			slots <- drv
		}()
	}
	wg.Wait()
	for i := 0; i < o.C; i++ {
		(<-slots).Close()
	}
	return total, nil
}

type upRecord struct {
	RID     string  `json:"rid"`
	End     int64   `json:"end"`
	Aborted bool    `json:"aborted"`
	Tokens  int     `json:"tokens"`
	Sent    []int64 `json:"sent"`
}
type upStats struct {
	Active  int64      `json:"active"`
	Records []upRecord `json:"records"`
}

func control(o *options, path string, in string, out any) error {
	method := "GET"
	if in != "" {
		method = "POST"
	}
	req, _ := http.NewRequest(method, o.Control+path, strings.NewReader(in))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(b, out)
}

// cancelFigures joins the client's close times with the upstream's records.
func cancelFigures(o *options, closed map[string]int64) map[string]any {
	// wait for every stream to end at the upstream: a gateway that does not
	// pass a cancel on lets the stream run out
	var st upStats
	for i := 0; i < 100; i++ {
		if control(o, "/stats", "", &st) != nil || st.Active == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	var abort, wasted []int64
	ranOut, unknown := 0, len(closed)
	for _, r := range st.Records {
		at, ok := closed[r.RID]
		if !ok {
			continue
		}
		unknown--
		w := int64(0)
		for _, t := range r.Sent {
			if t > at {
				w++
			}
		}
		wasted = append(wasted, w*1e6) // percentiles() divides by 1e6
		if r.Aborted {
			abort = append(abort, r.End-at)
		} else {
			ranOut++
		}
	}
	return map[string]any{
		"cancelled": len(closed), "abort_ms": percentiles(abort), "wasted_tokens": percentiles(wasted),
		"never_aborted": ranOut, "not_seen": unknown,
	}
}

func idleStreams(o *options, groups map[string][]int) (map[string]any, error) {
	warm, err := newDriver(o)
	if err != nil {
		return nil, err
	}
	// A few streams first, so that what a server loads once is not counted.
	for i := 0; i < 20; i++ {
		r := warm.Do(Spec{Stream: true, Hold: true})
		warm.Close()
		if r.Err != "" {
			return nil, fmt.Errorf("warm-up stream: %s", r.Err)
		}
	}
	time.Sleep(o.Settle)
	before := map[string]usage{}
	for g, p := range groups {
		before[g] = sample(p, true)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, errs := 0, map[string]int{}
	var held []Driver
	for w := 0; w < 32; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				mu.Lock()
				next++
				stop := next > o.IdleStreams
				mu.Unlock()
				if stop {
					return
				}
				d, err := newDriver(o)
				if err != nil {
					return
				}
				r := d.Do(Spec{Stream: true, Hold: true})
				mu.Lock()
				if r.Err != "" {
					errs[r.Err]++
					d.Close()
				} else {
					held = append(held, d)
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	time.Sleep(o.Settle)
	out := map[string]any{"asked": o.IdleStreams, "open": len(held), "errors": errs}
	var st upStats
	if control(o, "/stats", "", &st) == nil {
		out["active_at_upstream"] = st.Active
	}
	during := map[string]usage{}
	for g, p := range groups {
		during[g] = sample(p, true)
	}
	cpu0 := during
	time.Sleep(o.Settle)
	for g, p := range groups {
		u := sample(p, true)
		m := map[string]any{
			"rss_before_kb": before[g].RSSKB, "rss_open_kb": u.RSSKB, "pss_before_kb": before[g].PSSKB, "pss_open_kb": u.PSSKB,
			"idle_cpu_pct": (u.CPU - cpu0[g].CPU) / o.Settle.Seconds() * 100,
		}
		if len(held) > 0 {
			m["kb_per_stream"] = float64(u.RSSKB-before[g].RSSKB) / float64(len(held))
		}
		out[g] = m
	}
	for _, d := range held {
		d.Close()
	}
	time.Sleep(o.Settle)
	for g, p := range groups {
		out[g].(map[string]any)["rss_after_kb"] = sample(p, false).RSSKB
	}
	if control(o, "/stats", "", &st) == nil {
		out["active_after_close"] = st.Active
	}
	return out, nil
}

func main() {
	o := &options{}
	var headers, pids stringList
	flag.StringVar(&o.URL, "url", "http://127.0.0.1:9100", "base URL under test")
	flag.StringVar(&o.Path, "path", "", "request path (default: that of the protocol)")
	flag.StringVar(&o.Proto, "proto", "openai", "openai | ollama | embed | lmsp | exec")
	flag.StringVar(&o.Exec, "exec", "", "with -proto exec: the driver's command line")
	flag.StringVar(&o.Model, "model", "bench", "model name sent")
	flag.Var(&headers, "header", "extra request header, as 'Name: value' (repeatable)")
	flag.BoolVar(&o.Stream, "stream", false, "ask for a stream")
	flag.BoolVar(&o.Usage, "usage", true, "ask for a usage chunk (OpenAI streams)")
	flag.IntVar(&o.BodyBytes, "body-bytes", 1024, "bytes of prompt")
	flag.IntVar(&o.EmbedInputs, "embed-inputs", 1, "texts of an embeddings request, each of body-bytes")
	flag.IntVar(&o.Expect, "expect", 0, "tokens each stream must bring; another count is an error")
	flag.IntVar(&o.C, "c", 1, "concurrent requests (open loop: most under way)")
	flag.IntVar(&o.N, "n", 0, "requests in all (0: until -d)")
	flag.Float64Var(&o.Rate, "rate", 0, "requests a second: open loop (0: closed loop)")
	flag.DurationVar(&o.Duration, "d", 0, "how long to begin new requests")
	flag.DurationVar(&o.Warmup, "warmup", 300*time.Millisecond, "closed loop before the figures")
	flag.DurationVar(&o.Ramp, "ramp", 0, "spread the workers' first requests over this long")
	flag.DurationVar(&o.Timeout, "timeout", 60*time.Second, "per request")
	flag.IntVar(&o.CancelAfter, "cancel-after", 0, "close each stream after this many tokens")
	flag.IntVar(&o.IdleStreams, "idle-streams", 0, "instead: hold this many streams open and measure memory")
	flag.DurationVar(&o.Settle, "settle", 2*time.Second, "pause before each memory sample")
	flag.StringVar(&o.Control, "control", "http://127.0.0.1:9100", "the upstream's own URL, for /config and /stats")
	config := flag.String("config", "", "JSON to POST to the upstream's /config first")
	flag.Var(&pids, "pids", "name=pid[,pid...] to sample with all descendants (repeatable)")
	noAdded := flag.Bool("no-added", false, "do not keep per-token latencies")
	flag.Parse()
	o.Headers, o.keepAdded = headers, !*noAdded
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
	}
	groups := map[string][]int{"load": {os.Getpid()}}
	for _, g := range pids {
		name, list, _ := strings.Cut(g, "=")
		for _, s := range strings.Split(list, ",") {
			n, err := strconv.Atoi(s)
			fail(err)
			groups[name] = append(groups[name], n)
		}
	}
	if *config != "" {
		fail(control(o, "/config", *config, nil))
	}
	if o.CancelAfter > 0 || o.IdleStreams > 0 {
		fail(control(o, "/reset", "", nil))
	}
	out := map[string]any{"url": o.URL, "proto": o.Proto, "stream": o.Stream, "c": o.C, "rate": o.Rate, "body_bytes": o.BodyBytes}
	if o.IdleStreams > 0 {
		m, err := idleStreams(o, groups)
		fail(err)
		out["idle"] = m
	} else {
		if o.N == 0 && o.Duration == 0 {
			o.N = 100
		}
		if o.Warmup > 0 {
			w := *o
			w.Ramp = 0
			_, err := closedLoop(&w, min(o.C, 16), 0, o.Warmup)
			fail(err)
			if o.CancelAfter > 0 {
				fail(control(o, "/reset", "", nil))
			}
		}
		before := map[string]usage{}
		for g, p := range groups {
			before[g] = sample(p, false)
		}
		wall := time.Now()
		var a *agg
		var err error
		if o.Rate > 0 {
			a, err = openLoop(o)
		} else {
			a, err = closedLoop(o, o.C, o.N, o.Duration)
		}
		fail(err)
		took := time.Since(wall).Seconds()
		nerr := 0
		for _, n := range a.errs {
			nerr += n
		}
		out["ok"], out["errors"], out["seconds"] = a.ok, nerr, took
		if nerr > 0 {
			out["error_samples"] = firstFew(a.errs)
		}
		out["req_per_s"] = float64(a.ok) / took
		out["tokens_per_s"] = float64(a.tokens) / took
		out["mb_per_s"] = float64(a.bytes) / took / 1e6
		out["ttft_ms"], out["latency_ms"], out["added_ms"] = percentiles(a.ttft), percentiles(a.latency), percentiles(a.added)
		for g, p := range groups {
			u := sample(p, false)
			cpu := u.CPU - before[g].CPU
			m := map[string]any{"cpu_s": cpu, "cpu_pct": cpu / took * 100, "rss_kb": u.RSSKB, "procs": u.Procs}
			if a.ok > 0 {
				m["cpu_us_per_req"] = cpu * 1e6 / float64(a.ok)
			}
			if o.Stream && a.tokens > 0 {
				m["cpu_us_per_token"] = cpu * 1e6 / float64(a.tokens)
			}
			out[g] = m
		}
		if o.CancelAfter > 0 {
			out["cancel"] = cancelFigures(o, a.closed)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	fail(e.Encode(out))
	os.Stdout.Write(b.Bytes())
}

func firstFew(m map[string]int) map[string]int {
	out := map[string]int{}
	for k, v := range m {
		if len(out) == 5 {
			break
		}
		out[k] = v
	}
	return out
}
