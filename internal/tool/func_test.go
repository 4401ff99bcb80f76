package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/tool"
	"coder/testkit/tooltest"
)

type allArgs struct {
	Path  string            `json:"path" also:"file_path file" doc:"where"`
	Count int               `json:"count,omitzero" doc:"how many"`
	Ratio float64           `json:"ratio,omitzero" doc:"how much"`
	Deep  bool              `json:"deep,omitempty" doc:"all the way"`
	Mode  string            `json:"mode,omitzero" enum:"fast|slow" doc:"how"`
	Tags  []string          `json:"tags,omitzero" doc:"labels"`
	More  map[string]string `json:"more,omitzero" doc:"anything"`
}

// echo is a tool that returns its arguments as Go writes them.
func echo() tool.Func[allArgs] {
	return tool.Func[allArgs]{
		Name: "echo", Doc: "Returns the arguments it was given, unchanged.",
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "Echo"}, {Name: "say_it"}},
		Plan: func(_ context.Context, a allArgs) (tool.Plan, error) {
			if a.Path == "bad" {
				return tool.Plan{}, errors.New("a bad path")
			}
			return tool.Plan{Title: a.Path, Effects: []tool.Effect{{Kind: tool.Write, Target: a.Path}}, Preview: display.Text(a.Path)}, nil
		},
		Do: func(ctx context.Context, a allArgs, out io.Writer) (tool.Result, error) {
			if err := ctx.Err(); err != nil {
				return tool.Result{}, err
			}
			fmt.Fprint(out, "live")
			return tool.Result{Value: map[string]any{"ok": true, "got": fmt.Sprintf("%+v", a)}, Summary: "said"}, nil
		},
	}
}

func TestFuncKeepsTheContract(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		return tooltest.Fixture{
			Tool: echo(), Dir: t.TempDir(),
			Good: []string{`{"path":"x"}`, `{"path":"x","count":3,"tags":["a"]}`},
			Bad:  []string{`{}`, `{"path":"bad"}`, `{"path":1}`},
		}
	})
}

func TestDecode(t *testing.T) {
	for _, tc := range []struct{ name, args, want string }{
		{"plain", `{"path":"a","count":2,"ratio":0.5,"deep":true,"mode":"slow","tags":["x","y"],"more":{"k":"v"}}`, "{Path:a Count:2 Ratio:0.5 Deep:true Mode:slow Tags:[x y] More:map[k:v]}"},
		{"other names", `{"filePath":"a"}`, "{Path:a Count:0"},
		{"other case", `{"FILE":"a","COUNT":1}`, "{Path:a Count:1"},
		{"null is absent", `{"path":"a","count":null,"tags":null}`, "{Path:a Count:0"},
		{"written as strings", `{"path":"a","count":" 7 ","deep":"True","ratio":"1e2","tags":"[\"x\"]"}`, "{Path:a Count:7 Ratio:100 Deep:true Mode: Tags:[x]"},
		{"integers written as floats", `{"path":"a","count":5.0}`, "{Path:a Count:5 "},
		{"and with exponents", `{"path":"a","count":"-2e3"}`, "{Path:a Count:-2000 "},
		{"markup is not escaped", `{"path":"<a&b>"}`, "{Path:<a&b> "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := echo().Prepare(t.Context(), json.RawMessage(tc.args))
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			r, err := c.Run(t.Context(), &out)
			if got := r.Value.(map[string]any)["got"].(string); err != nil || !strings.HasPrefix(got, tc.want) || out.String() != "live" {
				t.Errorf("decoded %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{``, `echo: argument "path" is missing`},
		{`null`, `echo: argument "path" is missing`},
		{`{"path":null}`, `echo: argument "path" is missing`},
		{`[1]`, `echo: arguments must be a JSON object`},
		{`{"path":"a"`, `echo: arguments must be a JSON object`},
		{`{"path":"a","nope":1}`, `echo: unknown argument "nope"; it takes path, count, ratio, deep, mode, tags, more`},
		{`{"path":"a","file":"b"}`, `echo: argument "path" is given twice`},
		{`{"path":3}`, `echo: argument "path" must be a string`},
		{`{"path":"a","count":1.5}`, `echo: argument "count" must be an integer`},
		{`{"path":"a","count":"many"}`, `echo: argument "count" must be an integer`},
		{`{"path":"a","count":1e30}`, `echo: argument "count" must be an integer`},
		{`{"path":"a","count":"NaN"}`, `echo: argument "count" must be an integer`},
		{`{"path":"a","deep":"maybe"}`, `echo: argument "deep" must be a boolean`},
		{`{"path":"a","tags":[1]}`, `echo: argument "tags" must be an array`},
		{`{"path":"a","more":[]}`, `echo: argument "more" must be an object`},
		{`{"path":"a","mode":"medium"}`, `echo: argument "mode" must be one of fast, slow`},
		{`{"path":"bad"}`, `a bad path`},
	} {
		if _, err := echo().Prepare(t.Context(), json.RawMessage(tc.args)); err == nil || err.Error() != tc.want {
			t.Errorf("Prepare(%s): %v\nwant %s", tc.args, err, tc.want)
		}
	}
}

func TestSchema(t *testing.T) {
	want := `{"properties":{"count":{"description":"how many","type":"integer"},"deep":{"description":"all the way","type":"boolean"},"mode":{"description":"how","enum":["fast","slow"],"type":"string"},"more":{"additionalProperties":{"type":"string"},"description":"anything","type":"object"},"path":{"description":"where","type":"string"},"ratio":{"description":"how much","type":"number"},"tags":{"description":"labels","items":{"type":"string"},"type":"array"}},"required":["path"],"type":"object"}`
	if got := string(echo().Spec().Schema); got != want {
		t.Errorf("schema %s\nwant   %s", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"path":"a","count":"1"}`, `{"file_path":"a","deep":"TRUE"}`, `null`, `{"tags":"[1]"}`, `{"path":"a","count":1e400}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		c, err := echo().Prepare(t.Context(), args)
		if err != nil {
			return
		}
		if !json.Valid(args) || len(c.Plan().Effects) == 0 {
			t.Fatalf("Prepare(%q) made a plan", args)
		}
	})
}

// Who looks at a call sees its arguments by the tool's own names, whatever the model called them.
func TestNamed(t *testing.T) {
	type in struct {
		Path string `json:"path" also:"file_path file"`
		Text string `json:"content,omitzero" also:"text"`
	}
	f := tool.Func[in]{Name: "f"}
	for args, want := range map[string]string{
		`{"file":"a","text":"b"}`:      `{"content":"b","path":"a"}`,
		`{"filePath":"a"}`:             `{"path":"a"}`,
		`{"path":"a", "content":"b"}`:  `{"path":"a", "content":"b"}`,
		`{"path":"a","none":1}`:        `{"path":"a","none":1}`,
		`{"path":"a","file_path":"b"}`: `{"path":"a","file_path":"b"}`,
		`[]`:                           `[]`,
	} {
		if got := f.Spec().NormalizeArgs(json.RawMessage(args)); string(got) != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
