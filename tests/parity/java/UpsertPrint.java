// A table sink that writes by primary key and prints what it is given: see tests/parity/make_conflicts.py.

import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.connector.print.table.PrintTableSinkFactory;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.factories.DynamicTableSinkFactory;

public class UpsertPrint implements DynamicTableSinkFactory {

    private final PrintTableSinkFactory printing = new PrintTableSinkFactory();

    @Override
    public String factoryIdentifier() {
        return "upsert-print";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return printing.requiredOptions();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return printing.optionalOptions();
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
        return new ByKey(printing.createDynamicTableSink(context));
    }

    private static class ByKey implements DynamicTableSink {
        private final DynamicTableSink printed;

        ByKey(DynamicTableSink printed) {
            this.printed = printed;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return ChangelogMode.upsert();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return printed.getSinkRuntimeProvider(context);
        }

        @Override
        public DynamicTableSink copy() {
            return new ByKey(printed.copy());
        }

        @Override
        public String asSummaryString() {
            return "printed by key";
        }
    }
}
