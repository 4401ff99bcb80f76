package telemetry

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings say where telemetry goes, according to the standard
// environment variables. The zero Settings send nothing.
type Settings struct {
	Traces, Metrics *Target // nil if not sent
	Resource        []Attribute
}

// Target is an address for one kind of telemetry.
type Target struct {
	URL     string
	Headers map[string]string
	Timeout time.Duration
}

// DisplayURL returns the address for display, without possible secrets.
func (t Target) DisplayURL() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Enabled reports whether anything is sent.
func (s Settings) Enabled() bool { return s.Traces != nil || s.Metrics != nil }

const (
	defaultTimeout = 10 * time.Second
	defaultService = "coder"
	protocol       = "http/json" // the only supported one
)

// FromEnv reads the telemetry settings from the environment. Without an endpoint variable nothing is
// sent. complaints names unsupported settings.
func FromEnv(getenv func(string) string, version string) (s Settings, complaints []string) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return s, nil
	}
	for _, signal := range []struct {
		into       **Target
		name, path string
	}{{&s.Traces, "TRACES", "v1/traces"}, {&s.Metrics, "METRICS", "v1/metrics"}} {
		t, complaint := parseTarget(getenv, signal.name, signal.path)
		if *signal.into = t; complaint != "" && !slices.Contains(complaints, complaint) {
			complaints = append(complaints, complaint)
		}
	}
	switch getenv("OTEL_TRACES_SAMPLER") {
	case "always_off", "parentbased_always_off": // coder has no parent spans
		s.Traces = nil
	}
	if s.Enabled() {
		s.Resource = resourceAttributes(getenv, version)
	}
	return s, complaints
}

// LogTarget is where records of logs go, by the same variables; nil if none is named.
func LogTarget(getenv func(string) string, version string) (t *Target, from []Attribute, complaint string) {
	t, complaint = parseTarget(getenv, "LOGS", "v1/logs")
	return t, resourceAttributes(getenv, version), complaint
}

// parseTarget returns where one kind of telemetry goes.
func parseTarget(getenv func(string) string, signal, path string) (t *Target, complaint string) {
	// get returns the signal's own variable, or else the general one.
	get := func(name string) (string, string) {
		for _, full := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value := strings.TrimSpace(getenv(full)); value != "" {
				return full, value
			}
		}
		return "", ""
	}
	from, address := get("ENDPOINT")
	exporter := getenv("OTEL_" + signal + "_EXPORTER")
	if address == "" || exporter == "none" {
		return nil, ""
	}
	if exporter != "" && exporter != "otlp" {
		return nil, fmt.Sprintf("no telemetry is sent: OTEL_%s_EXPORTER=%s is not supported, use otlp", signal, exporter)
	}
	if name, p := get("PROTOCOL"); p != "" && p != protocol {
		return nil, fmt.Sprintf("no telemetry is sent: %s is %s, and only %s is supported", name, p, protocol)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Sprintf("no telemetry is sent: %s is not a web address", from)
	}
	if from == "OTEL_EXPORTER_OTLP_ENDPOINT" { // of all kinds, each under its own path
		u = u.JoinPath(path)
	}
	t = &Target{URL: u.String(), Timeout: defaultTimeout, Headers: make(map[string]string)}
	if _, text := get("TIMEOUT"); text != "" {
		if ms, err := strconv.Atoi(text); err == nil && ms > 0 {
			t.Timeout = time.Duration(ms) * time.Millisecond
		}
	}
	_, headers := get("HEADERS")
	for _, a := range parsePairs(headers) {
		t.Headers[a.Key] = a.Value.(string)
	}
	return t, ""
}

// resourceAttributes returns the attributes of the sender.
func resourceAttributes(getenv func(string) string, version string) []Attribute {
	all := parsePairs(getenv("OTEL_RESOURCE_ATTRIBUTES"))
	has := func(key string) bool { return slices.ContainsFunc(all, func(a Attribute) bool { return a.Key == key }) }
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		all = slices.DeleteFunc(all, func(a Attribute) bool { return a.Key == "service.name" })
		all = append(all, Attribute{"service.name", name})
	} else if !has("service.name") {
		all = append(all, Attribute{"service.name", defaultService})
	}
	if !has("service.version") {
		all = append(all, Attribute{"service.version", version})
	}
	return all
}

// parsePairs parses a list like a=b,c=d with URL-encoded values.
func parsePairs(text string) (all []Attribute) {
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		if ok && key != "" {
			all = append(all, Attribute{key, value})
		}
	}
	return all
}
