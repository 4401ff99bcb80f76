package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"coder/internal/core/message"
)

// Attribute is a key with a value: a string, an int, a float64, a bool or a list of strings.
type Attribute struct {
	Key   string
	Value any
}

// MarshalJSON encodes it in the protocol's form.
func (a Attribute) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}{a.Key, encodeValue(a.Value)})
}

func encodeValue(v any) map[string]any {
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
			values = append(values, encodeValue(s))
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	}
	return map[string]any{"stringValue": v}
}

// nanos is a time in the protocol's form.
type nanos time.Time

func (n nanos) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(time.Time(n).UnixNano(), 10)), nil
}

// The kinds of a span.
const (
	internalKind = 1
	clientKind   = 3
)

// span is an operation with a duration.
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

// fail marks a span as failed, with the reason.
func (s *span) fail(why string) {
	s.Status.Code = 2
	s.Attributes = append(s.Attributes, Attribute{"error.type", why})
}

type object = map[string]any

func (e *Exporter) scopeInfo() object {
	return object{"name": defaultService, "version": e.options.Version}
}

// metricsRequest returns a request with all counts since the start.
func (e *Exporter) metricsRequest(now time.Time) object {
	const cumulative = 2
	var all []object
	for _, m := range e.instruments {
		var points []object
		for _, s := range m.series {
			p := object{"attributes": s.attributes, "startTimeUnixNano": nanos(e.startTime), "timeUnixNano": nanos(now)}
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
		one := object{"name": m.name, "unit": m.unit, "description": m.description}
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
		"resource":     object{"attributes": e.options.Resource},
		"scopeMetrics": []object{{"scope": e.scopeInfo(), "metrics": all}},
	}}}
}

// send posts a request. again reports whether a retry may succeed.
func (e *Exporter) send(ctx context.Context, t *Target, body []byte) (again bool, err error) {
	_, again, err = t.post(ctx, e.options.Transport, e.options.Version, body)
	return again, err
}

// maxResponse bounds what is read of a reply. The rest is read so that the connection can be used again.
const maxResponse = 64 << 10

func (t *Target) post(ctx context.Context, by http.RoundTripper, version string, body []byte) (reply []byte, again bool,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	for name, value := range t.Headers {
		req.Header.Set(name, value)
	}
	if u := req.URL.User; u != nil {
		password, _ := u.Password()
		req.SetBasicAuth(u.Username(), password)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", defaultService+"/"+version)
	resp, err := by.RoundTrip(req) // no redirects: the headers are for this address only
	if err != nil {
		return nil, true, err
	}
	reply, _ = io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	_ = resp.Body.Close()
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return reply, false, nil
	case code == http.StatusTooManyRequests, code >= 502 && code <= 504:
		return nil, true, message.Errorf("the server answered %d", code)
	default:
		return nil, false, message.Errorf("the server answered %d", code)
	}
}

// Log is one record of a log.
type Log struct {
	Time       time.Time
	Body       string
	Attributes []Attribute
}

// SendLogs posts records, which a collector accepts as a whole or not at all.
func SendLogs(ctx context.Context, by http.RoundTripper, t Target, resource []Attribute, version string,
	logs []Log) error {
	const info = 9 // a number of the protocol
	var records []object
	for _, l := range logs {
		records = append(records, object{
			"timeUnixNano": nanos(l.Time), "severityNumber": info, "body": encodeValue(l.Body), "attributes": l.Attributes,
		})
	}
	body, err := json.Marshal(object{"resourceLogs": []object{{
		"resource":  object{"attributes": resource},
		"scopeLogs": []object{{"scope": object{"name": defaultService, "version": version}, "logRecords": records}},
	}}})
	if err != nil {
		return err
	}
	reply, _, err := t.post(ctx, by, version, body)
	var partial struct {
		Success struct {
			Rejected json.Number `json:"rejectedLogRecords"`
		} `json:"partialSuccess"`
	}
	if err != nil || json.Unmarshal(reply, &partial) != nil {
		return err
	}
	if n := partial.Success.Rejected; n != "" && n != "0" {
		return message.Errorf("the server rejected %s of %d records", n, len(logs))
	}
	return nil
}
