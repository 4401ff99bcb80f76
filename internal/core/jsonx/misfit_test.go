package jsonx_test

import (
	"encoding/json"
	"strings"
	"testing"

	"coder/internal/core/jsonx"
)

func TestWhatDoesNotFitIsToldInWords(t *testing.T) {
	type entry struct {
		Context int               `json:"context"`
		Price   *float64          `json:"price,omitempty"`
		Vision  bool              `json:"vision"`
		Refuses []string          `json:"refuses"`
		Env     map[string]string `json:"env"`
		Kept    string            `json:"-"`
	}
	for written, want := range map[string]string{
		`{"input": 2}`:         `unknown key "input"; use one of: context, price, vision, refuses, env`,
		`{"context": "a"}`:     "context: expected a whole number, found a string",
		`{"context": 1.5}`:     "context: expected a whole number, found a number",
		`{"price": []}`:        "price: expected a number, found a list",
		`{"vision": 1}`:        "vision: expected true or false, found a number",
		`{"refuses": {}}`:      "refuses: expected a list, found an object",
		`{"env": {"A": true}}`: "env: expected a string, found true or false",
		`[]`:                   "expected an object, found a list",
		`{"context"`:           "unexpected EOF",
	} {
		var e entry
		d := json.NewDecoder(strings.NewReader(written))
		d.DisallowUnknownFields()
		err := d.Decode(&e)
		if err == nil {
			t.Fatalf("%s fits", written)
		}
		if got := jsonx.ExplainMismatch(err, &e).Error(); got != want {
			t.Errorf("%s: %q, want %q", written, got, want)
		}
	}
}
