package confine_test

import (
	"slices"
	"testing"

	"coder/internal/policy/confine"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

func TestAnApprovedProgramGetsItsVariables(t *testing.T) {
	o, _ := helpless(t, confine.Off)
	o.WithheldEnv = func() []string {
		return []string{"GH_TOKEN=a", "AWS_SECRET_ACCESS_KEY=b", "NPM_TOKEN=c", "DB_PASSWORD=d", "CARGO_REGISTRIES_X_TOKEN=e"}
	}
	o.IsVouched = func(r risk.Report) bool { return r.Command == "gh release create v1" }
	c := confine.New(o)
	defer c.Close()
	for _, of := range []struct {
		line     string
		approved bool
		want     []string
		printed  string
		missing  string
	}{
		{"gh pr create", true, []string{"GH_TOKEN=a"}, "GH_TOKEN is unset", ""},
		{"gh pr create", false, nil, "", "env: GH_TOKEN was withheld; approve gh, or safety.env_allow"},
		{"gh release create v1", false, []string{"GH_TOKEN=a"}, "", ""},
		{"cd x && gh pr list | grep open", true, []string{"GH_TOKEN=a"}, "", ""},
		{"aws s3 ls && npm publish", true, []string{"AWS_SECRET_ACCESS_KEY=b", "NPM_TOKEN=c"}, "", ""},
		{"cargo publish", true, []string{"CARGO_REGISTRIES_X_TOKEN=e"}, "", ""},
		{"gh pr create && ./deploy", true, nil, "", "env: GH_TOKEN was withheld; approve gh, or safety.env_allow"},
		{"gh pr create -t $(./title)", true, nil, "", "env: GH_TOKEN was withheld; approve gh, or safety.env_allow"},
		{"./gh pr create", true, nil, "", ""},
		{"make", true, nil, "set DB_PASSWORD first", "env: DB_PASSWORD was withheld; safety.env_allow"},
		{"make", true, nil, "DB_PASSWORDS MY_GH_TOKEN", ""},
		{"npm ci", false, nil, "", "env: NPM_TOKEN was withheld; approve npm, or safety.env_allow"},
	} {
		got, err := c.Command(tool.WithApproval(t.Context(), of.approved), read(of.line))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Env, of.want) {
			t.Errorf("%q, approved %v: gets %q, want %q", of.line, of.approved, got.Env, of.want)
		}
		if said := got.MissingVariables(of.printed); said != of.missing {
			t.Errorf("%q, approved %v: says %q, want %q", of.line, of.approved, said, of.missing)
		}
	}
	o.Rerun = true
	rerun := confine.New(o)
	defer rerun.Close()
	if got, err := rerun.Command(tool.WithApproval(t.Context(), true), read("gh pr create")); err != nil || got.Env != nil {
		t.Errorf("run again it gets %q, %v", got.Env, err)
	}
}
