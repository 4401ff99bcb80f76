// Package tooltest checks that a tool keeps the promises of [tool.Tool]. Every
// tool runs it.
package tooltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"coder/internal/tool"
)

// Fixture is a tool and what the suite needs to know to use it.
type Fixture struct {
	Tool tool.Tool
	// Dir holds everything the tool could change. It must not change while
	// calls are prepared.
	Dir string
	// Good are arguments that prepare and run, in any order and side by side,
	// whether or not what they do succeeds.
	Good []string
	// Bad are arguments that do not prepare.
	Bad []string
}

// TestTool runs the suite; open makes a fresh fixture for each of its parts.
func TestTool(t *testing.T, open func(t *testing.T) Fixture) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Fixture)
	}{
		{"spec", testSpec},
		{"prepare changes nothing", testPrepare},
		{"garbage is refused", testGarbage},
		{"missing arguments are refused", testMissing},
		{"plan", testPlan},
		{"run", testRun},
		{"side by side", testConcurrent},
		{"cancelled", testCancelled},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open(t)) })
	}
}

// schema is what the suite reads of a JSON Schema.
type schema struct {
	Type       string
	Properties map[string]struct {
		Type, Description string
		Enum              []string
	}
	Required []string
}

func schemaOf(t *testing.T, spec tool.Spec) (s schema) {
	t.Helper()
	if err := json.Unmarshal(spec.Schema, &s); err != nil {
		t.Fatalf("schema: %v\n%s", err, spec.Schema)
	}
	return s
}

var types = []string{"string", "integer", "number", "boolean", "array", "object"}

func testSpec(t *testing.T, f Fixture) {
	spec := f.Tool.Spec()
	if spec.Name == "" || strings.ToLower(spec.Name) != spec.Name || strings.ContainsAny(spec.Name, " -.") {
		t.Errorf("name %q", spec.Name)
	}
	if len(strings.Fields(spec.Doc)) < 5 {
		t.Errorf("description %q says too little", spec.Doc)
	}
	s := schemaOf(t, spec)
	if s.Type != "object" || s.Properties == nil {
		t.Errorf("schema is not that of an object: %s", spec.Schema)
	}
	for name, p := range s.Properties {
		if name == "" || !slices.Contains(types, p.Type) {
			t.Errorf("argument %q: type %q", name, p.Type)
		}
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			t.Errorf("required argument %q is not described", name)
		}
	}
	if again := f.Tool.Spec(); string(again.Schema) != string(spec.Schema) || again.Doc != spec.Doc {
		t.Error("the description changes from one time to the next")
	}
	for _, a := range spec.Aliases {
		if a.Name == "" {
			t.Errorf("alias without a name: %v", spec.Aliases)
		}
	}
}

func testPrepare(t *testing.T, f Fixture) {
	before := digest(t, f.Dir)
	for _, args := range slices.Concat(f.Good, f.Bad) {
		_, _ = f.Tool.Prepare(t.Context(), json.RawMessage(args))
		if after := digest(t, f.Dir); after != before {
			t.Fatalf("Prepare(%.100s) changed the directory", args)
		}
	}
}

// digest tells one state of a directory tree from another: names, modes, links
// and contents.
func digest(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v\n", path, info.Mode())
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			fmt.Fprintf(h, "%x\n", sha256.Sum256(b))
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			fmt.Fprintf(h, "%q\n", to)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// garbage is what no tool should swallow.
var garbage = []string{
	`[]`, `"x"`, `7`, `true`, `{`, `{"`, `nonsense`, `{}{}`, "\x00", "{\"\xff\":1}",
	`{"no such argument":1}`, `{"":1}`, `{"__proto__":{}}`,
	strings.Repeat(`[`, 100_000), strings.Repeat(`{"a":`, 50_000),
}

func testGarbage(t *testing.T, f Fixture) {
	for _, args := range slices.Concat(garbage, f.Bad) {
		if _, err := f.Tool.Prepare(t.Context(), json.RawMessage(args)); err == nil {
			t.Errorf("Prepare(%.100q) succeeded", args)
		}
	}
	for name, p := range schemaOf(t, f.Tool.Spec()).Properties {
		for _, value := range []string{`{"a":1}`, `[[1]]`, `"\u0000"`, `1e99`, `-1e99`,
			`"` + strings.Repeat("../", 20_000) + `"`} {
			args := fmt.Sprintf(`{%q:%s}`, name, value)
			_, err := f.Tool.Prepare(t.Context(), json.RawMessage(args)) // must not panic
			if err == nil && value[0] == '{' && p.Type != "object" {
				t.Errorf("Prepare(%s) succeeded", args)
			}
		}
	}
}

func testMissing(t *testing.T, f Fixture) {
	required := schemaOf(t, f.Tool.Spec()).Required
	for _, args := range f.Good {
		for _, name := range required {
			var m map[string]json.RawMessage
			if err := json.Unmarshal([]byte(args), &m); err != nil {
				t.Fatal(err)
			}
			if _, ok := m[name]; !ok {
				continue // given under another name
			}
			delete(m, name)
			less, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Tool.Prepare(t.Context(), less); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("Prepare(%s) without %q: %v", less, name, err)
			}
		}
	}
}

func prepare(t *testing.T, f Fixture, args string) tool.Call {
	t.Helper()
	call, err := f.Tool.Prepare(t.Context(), json.RawMessage(args))
	if err != nil {
		t.Fatalf("Prepare(%s): %v", args, err)
	}
	return call
}

func testPlan(t *testing.T, f Fixture) {
	for _, args := range f.Good {
		plan := prepare(t, f, args).Plan()
		if len(plan.Effects) == 0 || plan.Title == "" {
			t.Errorf("plan of %s has title %q and effects %v", args, plan.Title, plan.Effects)
		}
		for _, e := range plan.Effects {
			if e.Kind == tool.Unknown || e.Target == "" {
				t.Errorf("plan of %s has effect %q", args, e)
			}
		}
		if !plan.ReadOnly() && plan.Preview == nil {
			t.Errorf("plan of %s has nothing to show to whom must approve it", args)
		}
	}
}

func testRun(t *testing.T, f Fixture) {
	for _, args := range f.Good {
		call := prepare(t, f, args)
		before := digest(t, f.Dir)
		result, err := call.Run(t.Context(), io.Discard)
		if err != nil {
			t.Errorf("run of %s: %v", args, err)
			continue
		}
		checkResult(t, args, result)
		if call.Plan().ReadOnly() && digest(t, f.Dir) != before {
			t.Errorf("run of %s changed the directory, but planned only to read", args)
		}
	}
}

// checkResult sees that a result is an object that says whether it is ok.
func checkResult(t *testing.T, args string, r tool.Result) {
	t.Helper()
	b, err := json.Marshal(r.Value)
	if err != nil {
		t.Errorf("result of %s: %v", args, err)
		return
	}
	var object struct{ OK *bool }
	if err := json.Unmarshal(b, &object); err != nil || object.OK == nil || *object.OK == r.Failed {
		t.Errorf("result of %s: failed is %v, value %.300s", args, r.Failed, b)
	}
	if r.Summary == "" {
		t.Errorf("result of %s has no summary", args)
	}
}

// testConcurrent uses the tool from several goroutines. That calls which change
// the same thing refuse each other is well; -race and panics are what matters.
func testConcurrent(t *testing.T, f Fixture) {
	var all sync.WaitGroup
	for range 4 {
		for _, args := range f.Good {
			all.Go(func() {
				call, err := f.Tool.Prepare(t.Context(), json.RawMessage(args))
				if err != nil {
					return
				}
				call.Plan()
				if result, err := call.Run(t.Context(), io.Discard); err == nil {
					checkResult(t, args, result)
				}
			})
		}
	}
	all.Wait()
}

// testCancelled sees that a call whose context has ended changes nothing.
func testCancelled(t *testing.T, f Fixture) {
	before := digest(t, f.Dir)
	for _, args := range f.Good {
		call := prepare(t, f, args)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := call.Run(ctx, io.Discard); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled run of %s: %v", args, err)
		}
		if digest(t, f.Dir) != before {
			t.Fatalf("cancelled run of %s changed the directory", args)
		}
	}
}
