package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Attribute is a fact: its value is a string, an int, a float64, a bool or a list of
// strings.
type Attribute struct {
	Key   string
	Value any
}

// MarshalJSON writes it as the protocol has it.
func (a Attribute) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}{a.Key, wireValue(a.Value)})
}

func wireValue(v any) map[string]any {
	switch v := v.(type) {
	case int:
		return map[string]any{"intValue": strconv.Itoa(v)}
	case float64:
		return map[string]any{"doubleValue": v}
	case bool:
		return map[string]any{"boolValue": v}
	case []string:
		values := []map[string]any{}
		for _, s := range v {
			values = append(values, wireValue(s))
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	}
	return map[string]any{"stringValue": v}
}

// nanos is a time as the protocol has it.
type nanos time.Time

func (n nanos) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(time.Time(n).UnixNano(), 10)), nil
}

// The kinds of a span.
const (
	internal = 1
	client   = 3
)

// span is something that took time.
type span struct {
	TraceID    string      `json:"traceId"`
	ID         string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      nanos       `json:"startTimeUnixNano"`
	End        nanos       `json:"endTimeUnixNano"`
	Attributes []Attribute `json:"attributes"`
	Status     status      `json:"status"`
}

type status struct {
	Code int `json:"code,omitempty"` // 2 is an error
}

// fail says that a span ended badly, and in which way.
func (s *span) fail(why string) {
	s.Status.Code = 2
	s.Attributes = append(s.Attributes, Attribute{"error.type", why})
}

type object = map[string]any

func (e *Exporter) scope() object { return object{"name": defaultService, "version": e.o.Version} }

// metrics is a request that tells of all that was counted since the beginning.
func (e *Exporter) metrics(now time.Time) object {
	const cumulative = 2
	var all []object
	for _, m := range e.instruments {
		var points []object
		for _, s := range m.series {
			p := object{"attributes": s.attributes, "startTimeUnixNano": nanos(e.began), "timeUnixNano": nanos(now)}
			if m.bounds == nil {
				p["asDouble"] = s.sum
			} else {
				counts := make([]string, len(s.buckets))
				for i, n := range s.buckets {
					counts[i] = strconv.Itoa(n)
				}
				p["count"], p["sum"], p["bucketCounts"], p["explicitBounds"] = strconv.Itoa(s.count), s.sum, counts, m.bounds
			}
			points = append(points, p)
		}
		if len(points) == 0 {
			continue
		}
		data := object{"dataPoints": points, "aggregationTemporality": cumulative}
		one := object{"name": m.name, "unit": m.unit, "description": m.about}
		if m.bounds == nil {
			data["isMonotonic"] = true
			one["sum"] = data
		} else {
			one["histogram"] = data
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil
	}
	return object{"resourceMetrics": []object{{
		"resource":     object{"attributes": e.o.Resource},
		"scopeMetrics": []object{{"scope": e.scope(), "metrics": all}},
	}}}
}

// send posts a request. Again reports whether it may be taken another time.
func (e *Exporter) send(ctx context.Context, t *Target, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	for name, value := range t.Headers {
		req.Header.Set(name, value)
	}
	if u := req.URL.User; u != nil {
		password, _ := u.Password()
		req.SetBasicAuth(u.Username(), password)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", defaultService+"/"+e.o.Version)
	resp, err := e.o.Transport.RoundTrip(req) // without going elsewhere: the headers are for this address
	if err != nil {
		return true, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	_ = resp.Body.Close()
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return false, nil
	case code == http.StatusTooManyRequests, code >= 502 && code <= 504:
		return true, fmt.Errorf("the server answered %d", code)
	default:
		return false, fmt.Errorf("the server answered %d", code)
	}
}
