module lamina.test/bench/load

go 1.25.0
