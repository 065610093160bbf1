// Process table functions that Flink runs to record what it emits: see tests/parity/make_process_changelogs.py.
// tests/parity/process_functions.py has the same functions in Python.

import static org.apache.flink.table.annotation.ArgumentTrait.OPTIONAL_PARTITION_BY;
import static org.apache.flink.table.annotation.ArgumentTrait.PASS_COLUMNS_THROUGH;
import static org.apache.flink.table.annotation.ArgumentTrait.REQUIRE_ON_TIME;
import static org.apache.flink.table.annotation.ArgumentTrait.REQUIRE_UPDATE_BEFORE;
import static org.apache.flink.table.annotation.ArgumentTrait.ROW_SEMANTIC_TABLE;
import static org.apache.flink.table.annotation.ArgumentTrait.SET_SEMANTIC_TABLE;
import static org.apache.flink.table.annotation.ArgumentTrait.SUPPORT_UPDATES;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.flink.table.annotation.ArgumentHint;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.StateHint;
import org.apache.flink.table.api.dataview.ListView;
import org.apache.flink.table.api.dataview.MapView;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.functions.ChangelogFunction;
import org.apache.flink.table.functions.ProcessTableFunction;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

public class ProcessFunctions {

    /** A row for each row; nothing is remembered. */
    public static class Greeting extends ProcessTableFunction<String> {
        public void eval(@ArgumentHint(ROW_SEMANTIC_TABLE) Row input, Integer least) {
            Long v = input.getFieldAs("v");
            if (v != null && v >= least) {
                collect("Hello " + input.getField("k"));
            }
        }
    }

    /** Rows with the columns of the table in front. */
    @DataTypeHint("ROW<twice BIGINT>")
    public static class PassedRows extends ProcessTableFunction<Row> {
        public void eval(@ArgumentHint({ROW_SEMANTIC_TABLE, PASS_COLUMNS_THROUGH}) Row input) {
            Long v = input.getFieldAs("v");
            collect(Row.of(v == null ? null : v * 2));
        }
    }

    /** The same over sets: v behind k, whatever the key is. */
    @DataTypeHint("ROW<k STRING, n BIGINT>")
    public static class PassedSets extends ProcessTableFunction<Row> {
        public static class Count {
            public long n = 0L;
        }

        public void eval(
                @StateHint Count count, @ArgumentHint({SET_SEMANTIC_TABLE, PASS_COLUMNS_THROUGH}) Row input) {
            count.n++;
            collect(Row.of("key", count.n));
        }
    }

    /** A value in state. */
    @DataTypeHint("ROW<n BIGINT, last BIGINT>")
    public static class Counting extends ProcessTableFunction<Row> {
        public static class Memory {
            public long n = 0L;
            public Long last;
        }

        public void eval(
                Context ctx,
                @StateHint Memory memory,
                @ArgumentHint({SET_SEMANTIC_TABLE, OPTIONAL_PARTITION_BY}) Row input) {
            memory.n++;
            collect(Row.of(memory.n, memory.last));
            memory.last = input.getFieldAs("v");
            if (memory.n == 4) {
                ctx.clearAllState();
            }
        }
    }

    /** A list and a map in state. */
    @DataTypeHint("ROW<elements STRING, counts STRING>")
    public static class Viewing extends ProcessTableFunction<Row> {
        public void eval(
                Context ctx,
                @StateHint ListView<Long> seen,
                @StateHint MapView<String, Long> counts,
                @ArgumentHint(SET_SEMANTIC_TABLE) Row input)
                throws Exception {
            seen.add(input.getFieldAs("id"));
            String word = "v" + input.getField("v");
            Long known = counts.get(word);
            counts.put(word, known == null ? 1L : known + 1);
            List<Long> elements = new ArrayList<>();
            seen.get().forEach(elements::add);
            TreeMap<String, Long> sorted = new TreeMap<>();
            for (String key : counts.keys()) {
                sorted.put(key, counts.get(key));
            }
            collect(Row.of(joined(elements), joined(sorted.entrySet())));
            if (elements.size() == 5) {
                ctx.clearState("seen");
            }
        }
    }

    private static String joined(Iterable<?> values) {
        StringBuilder text = new StringBuilder();
        for (Object value : values) {
            text.append(text.length() == 0 ? "" : ";").append(value);
        }
        return text.toString();
    }

    /** Timers with names, which take each other's place, and without. */
    @DataTypeHint("ROW<what STRING, n BIGINT, `time` BIGINT, `watermark` BIGINT>")
    public static class Timers extends ProcessTableFunction<Row> {
        public static class Memory {
            public long n = 0L;
        }

        public void eval(
                Context ctx,
                @StateHint Memory memory,
                @ArgumentHint({SET_SEMANTIC_TABLE, REQUIRE_ON_TIME}) Row input) {
            memory.n++;
            TimeContext<Long> time = ctx.timeContext(Long.class);
            collect(Row.of("row", memory.n, time.time(), time.currentWatermark()));
            time.registerOnTime("ping", time.time() + 3000);
            time.registerOnTime(time.time() + 1000);
            Long v = input.getFieldAs("v");
            if (v != null && v == 3) {
                time.clearTimer("ping");
            }
            if (v != null && v == 0) {
                ctx.clearAll();
            }
        }

        public void onTimer(OnTimerContext ctx, Memory memory) {
            TimeContext<Long> time = ctx.timeContext(Long.class);
            collect(Row.of("timer " + ctx.currentTimer(), memory.n, time.time(), time.currentWatermark()));
            if ("ping".equals(ctx.currentTimer())) {
                time.registerOnTime("again", time.time() - 500);
            }
        }
    }

    /** Two tables that share their keys. */
    @DataTypeHint("ROW<text STRING>")
    public static class Pairing extends ProcessTableFunction<Row> {
        public static class Last {
            public Long item;
        }

        public void eval(
                @StateHint Last last,
                @ArgumentHint(SET_SEMANTIC_TABLE) Row visit,
                @ArgumentHint(SET_SEMANTIC_TABLE) Row purchase) {
            if (purchase != null) {
                last.item = purchase.getFieldAs("id");
            } else {
                collect(Row.of("visit " + visit.getField("id") + " after " + last.item));
            }
        }
    }

    /** The kinds of rows that come. */
    @DataTypeHint("ROW<flag STRING, was BIGINT>")
    public static class Kinds extends ProcessTableFunction<Row> {
        public void eval(@ArgumentHint({SET_SEMANTIC_TABLE, SUPPORT_UPDATES}) Row input) {
            collect(Row.of(input.getKind().toString(), input.getField("v")));
        }
    }

    /** The same with the rows before updates. */
    @DataTypeHint("ROW<flag STRING, was BIGINT>")
    public static class AllKinds extends ProcessTableFunction<Row> {
        public void eval(
                @ArgumentHint({SET_SEMANTIC_TABLE, SUPPORT_UPDATES, REQUIRE_UPDATE_BEFORE}) Row input) {
            collect(Row.of(input.getKind().toString(), input.getField("v")));
        }
    }

    /** The same of rows that are nobody's. */
    @DataTypeHint("ROW<flag STRING, was BIGINT>")
    public static class RowKinds extends ProcessTableFunction<Row> {
        public void eval(@ArgumentHint({ROW_SEMANTIC_TABLE, SUPPORT_UPDATES}) Row input) {
            collect(Row.of(input.getKind().toString(), input.getField("v")));
        }
    }

    /** Emits updates. */
    @DataTypeHint("ROW<total BIGINT>")
    public static class Totals extends ProcessTableFunction<Row> implements ChangelogFunction {
        public static class Memory {
            public long total = 0L;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogContext context) {
            return ChangelogMode.all();
        }

        public void eval(@StateHint Memory memory, @ArgumentHint(SET_SEMANTIC_TABLE) Row input) {
            Long v = input.getFieldAs("v");
            if (v == null) {
                return;
            }
            if (memory.total > 0) {
                collect(Row.ofKind(v == 0 ? RowKind.DELETE : RowKind.UPDATE_BEFORE, memory.total));
            }
            if (v == 0) {
                memory.total = 0;
                return;
            }
            RowKind kind = memory.total > 0 ? RowKind.UPDATE_AFTER : RowKind.INSERT;
            memory.total += v;
            collect(Row.ofKind(kind, memory.total));
        }
    }

    /** Takes rows in the order of the call. */
    @DataTypeHint("ROW<ids STRING>")
    public static class Ordered extends ProcessTableFunction<Row> {
        public static class Memory {
            public String ids = "";
        }

        public void eval(@StateHint Memory memory, @ArgumentHint(SET_SEMANTIC_TABLE) Row input) {
            memory.ids += input.getField("id") + ";";
            collect(Row.of(memory.ids));
        }
    }
}
