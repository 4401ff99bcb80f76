package app

import (
	"net/url"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/report/telemetry"
)

// readTelemetry reads the address of the user's collector from the environment, if it names one.
func (a *Extensions) readTelemetry() {
	if !a.isPermitted(func(l config.ManagedLimits) *bool { return l.Telemetry }) ||
		!slices.ContainsFunc(a.Env.Environ, func(kv string) bool { return strings.HasPrefix(kv, "OTEL_EXPORTER_OTLP_") }) {
		return
	}
	var complaints []string
	a.telemetry, complaints = telemetry.FromEnv(a.Env.Getenv, Version)
	for _, text := range complaints {
		a.warn(singleLine(text))
	}
}

// telemetryProvider returns the provider's name in telemetry conventions, and its host.
func (a *Models) telemetryProvider() (name, server string) {
	c := a.endpoint()
	if a.isScripted() {
		return "script", ""
	}
	if u, err := url.Parse(c.BaseURL); err == nil {
		server = u.Hostname()
	}
	switch c.Preset {
	case "":
		return c.Kind, server
	case "gemini":
		return "gcp.gemini", server
	case "azure":
		return "azure.ai.openai", server
	case "mistral":
		return "mistral_ai", server
	case "xai":
		return "x_ai", server
	}
	return c.Preset, server
}

// telemetrySecrets returns the secrets in requests to the collectors.
func (a *Extensions) telemetrySecrets() (keys []string) {
	for _, t := range []*telemetry.Target{a.telemetry.Traces, a.telemetry.Metrics} {
		if t == nil {
			continue
		}
		for _, value := range t.Headers {
			if key := value[strings.LastIndexByte(value, ' ')+1:]; len(key) >= 8 {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
