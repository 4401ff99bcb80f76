package files

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The words that our reader finds are those that pdftotext finds, in the same
// order.
func TestPDFHasTheWordsThatPdftotextFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	program, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip("pdftotext is not installed")
	}
	const cases = 60
	words := []string{"alpha", "beta", "gamma\\(x\\)", "1\x962", "\x93q\x94", "caf\xe9", "end."}
	for i := range cases {
		r := rand.New(rand.NewPCG(9, uint64(i)))
		var content strings.Builder
		y := 780
		for range 1 + r.IntN(12) {
			y -= 20
			switch r.IntN(3) {
			case 0:
				fmt.Fprintf(&content, "BT /F1 12 Tf 60 %d Td (%s %s) Tj ET\n", y, words[r.IntN(len(words))], words[r.IntN(len(words))])
			case 1:
				fmt.Fprintf(&content, "BT /F1 12 Tf 1 0 0 1 60 %d Tm (%s) Tj 1 0 0 1 300 %d Tm (%s) Tj ET\n", y, words[r.IntN(len(words))], y, words[r.IntN(len(words))])
			case 2:
				fmt.Fprintf(&content, "BT /F1 12 Tf 60 %d Td [(%s) -900 (%s)] TJ ET\n", y, words[r.IntN(len(words))], words[r.IntN(len(words))])
			}
		}
		file := wholePDF("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
			"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
			fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", content.Len(), content.String()),
			"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
		cmd := exec.Command(program, "-q", "-enc", "UTF-8", "-layout", "-", "-")
		cmd.Stdin = bytes.NewReader(file)
		theirs, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		ours, err := pdfText(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := strings.Fields(ours), strings.Fields(string(theirs)); !slices.Equal(a, b) {
			t.Errorf("case %d: ours %q\ntheirs %q\n%s", i, a, b, content.String())
		}
	}
}

// wholePDF is a document with the table that says where its objects are.
func wholePDF(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table)
	return b.Bytes()
}
