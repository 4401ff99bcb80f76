package telemetry

import "testing"

// TestAnInstrumentHasNoMoreSeriesThanItsBound: the last series counts everything beyond the others.
func TestAnInstrumentHasNoMoreSeriesThanItsBound(t *testing.T) {
	const values = maxSeries + 100
	m := &instrument{bounds: []float64{1, 10}}
	for range 2 {
		for i := range values {
			m.add(1, Attribute{"model", i})
		}
	}
	if len(m.series) != maxSeries {
		t.Fatalf("%d series", len(m.series))
	}
	sum := 0
	for _, s := range m.series {
		sum += s.count
	}
	last := m.series[maxSeries-1]
	if sum != 2*values || last.count != 2*(values-maxSeries+1) || last.attributes[0].Key != "otel.metric.overflow" {
		t.Errorf("%d values, the last series has %d under %v", sum, last.count, last.attributes)
	}
}
