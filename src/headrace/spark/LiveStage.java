package headrace.live;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.api.python.ChainedPythonFunctions;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonRDD;
import org.apache.spark.api.python.PythonRunner;
import org.apache.spark.rdd.RDD;

/** A Python stage that takes input and gives output at the same time, for as long as its input lasts. */
public class LiveStage extends PythonRDD {
  private final PythonFunction function;
  private final int buffer;

  public LiveStage(RDD parent, PythonFunction function, int buffer) {
    super(parent, function, false, false);
    this.function = function;
    this.buffer = buffer;
  }

  public scala.collection.Iterator compute(Partition split, TaskContext context) {
    RDD parent = this.parent(0, null);
    return new LiveStageRunner(function, buffer).compute(parent.iterator(split, context), split.index(), context);
  }
}

/** Writes a worker's input in a thread of its own, as Spark does for SQL functions, with the protocol of plain RDDs. */
class LiveStageRunner extends PythonRunner {
  private final Thread task = Thread.currentThread();
  private final int buffer;

  LiveStageRunner(PythonFunction function, int buffer) {
    super(one(new ChainedPythonFunctions(one(function))), scala.Option.empty());
    this.buffer = buffer;
  }

  private static scala.collection.immutable.Seq one(Object item) {
    return new scala.collection.immutable.$colon$colon(item, (scala.collection.immutable.List) scala.collection.immutable.Nil$.MODULE$);
  }

  public boolean pipelinedEnabled() { return true; }

  /** The task's thread decides by it whether to use two threads; the worker is told the type of a plain RDD. */
  public int evalType() { return Thread.currentThread() == task ? 207 : 0; }

  public int bufferSize() { return buffer; }
}
