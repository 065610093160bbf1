import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.autoscaler.JobAutoScalerContext;
import org.apache.flink.autoscaler.JobAutoScalerImpl;
import org.apache.flink.autoscaler.RestApiMetricsCollector;
import org.apache.flink.autoscaler.ScalingExecutor;
import org.apache.flink.autoscaler.ScalingMetricEvaluator;
import org.apache.flink.autoscaler.event.LoggingEventHandler;
import org.apache.flink.autoscaler.realizer.ScalingRealizer;
import org.apache.flink.autoscaler.state.InMemoryAutoScalerStateStore;
import org.apache.flink.autoscaler.tuning.ConfigChanges;
import org.apache.flink.autoscaler.utils.JobStatusUtils;
import org.apache.flink.client.program.rest.RestClusterClient;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.highavailability.nonha.standalone.StandaloneClientHAServices;
import org.apache.flink.runtime.jobgraph.JobResourceRequirements;
import org.apache.flink.runtime.jobgraph.JobVertexResourceRequirements;
import org.apache.flink.runtime.jobgraph.JobVertexResourceRequirements.Parallelism;
import org.apache.flink.runtime.rest.messages.EmptyMessageParameters;
import org.apache.flink.runtime.rest.messages.EmptyRequestBody;
import org.apache.flink.runtime.rest.messages.JobMessageParameters;
import org.apache.flink.runtime.rest.messages.JobsOverviewHeaders;
import org.apache.flink.runtime.rest.messages.job.JobManagerJobConfigurationHeaders;
import org.apache.flink.runtime.rest.messages.job.JobResourceRequirementsBody;
import org.apache.flink.runtime.rest.messages.job.JobResourceRequirementsHeaders;
import org.apache.flink.runtime.rest.messages.job.JobResourcesRequirementsUpdateHeaders;

/**
 * Flink's autoscaler, driven as its standalone program drives it: it looks at all jobs of a server once a second, until
 * it is killed. Its decisions go to the server as resource requirements.
 *
 * <p>Arguments: the server's address, then options as key=value.
 */
public final class FlinkAutoscaler {
    private static String server;

    public static void main(String[] words) throws Exception {
        server = words[0];
        var options = new Configuration();
        for (int index = 1; index < words.length; index++) {
            var option = words[index].split("=", 2);
            options.setString(option[0], option[1]);
        }
        var states = new InMemoryAutoScalerStateStore<JobID, JobAutoScalerContext<JobID>>();
        var events = new LoggingEventHandler<JobID, JobAutoScalerContext<JobID>>();
        var scaler =
                new JobAutoScalerImpl<>(
                        new RestApiMetricsCollector<JobID, JobAutoScalerContext<JobID>>(),
                        new ScalingMetricEvaluator(),
                        new ScalingExecutor<>(events, states),
                        events,
                        new Requirements(),
                        states);
        while (true) {
            try (var client = connect(options)) {
                var jobs =
                        client.sendRequest(
                                        JobsOverviewHeaders.getInstance(),
                                        EmptyMessageParameters.getInstance(),
                                        EmptyRequestBody.getInstance())
                                .get();
                for (var job : JobStatusUtils.toJobStatusMessage(jobs)) {
                    var own = new Configuration(options);
                    client.sendRequest(
                                    JobManagerJobConfigurationHeaders.getInstance(),
                                    parameters(job.getJobId()),
                                    EmptyRequestBody.getInstance())
                            .get()
                            .forEach(entry -> own.setString(entry.getKey(), entry.getValue()));
                    scaler.scale(
                            new JobAutoScalerContext<>(
                                    job.getJobId(),
                                    job.getJobId(),
                                    job.getJobState(),
                                    own,
                                    new UnregisteredMetricsGroup(),
                                    () -> connect(own)));
                }
            }
            Thread.sleep(1000);
        }
    }

    private static RestClusterClient<String> connect(Configuration options) throws Exception {
        return new RestClusterClient<>(
                options, "any", (configuration, errors) -> new StandaloneClientHAServices(server));
    }

    private static JobMessageParameters parameters(JobID job) {
        var parameters = new JobMessageParameters();
        parameters.jobPathParameter.resolve(job);
        return parameters;
    }

    private static final class Requirements
            implements ScalingRealizer<JobID, JobAutoScalerContext<JobID>> {
        @Override
        public void realizeParallelismOverrides(
                JobAutoScalerContext<JobID> context, Map<String, String> wanted) throws Exception {
            try (var client = context.getRestClusterClient()) {
                var found =
                        client.sendRequest(
                                        new JobResourceRequirementsHeaders(),
                                        parameters(context.getJobID()),
                                        EmptyRequestBody.getInstance())
                                .get()
                                .asJobResourceRequirements()
                                .get()
                                .getJobVertexParallelisms();
                var changed = new HashMap<>(found);
                changed.replaceAll(
                        (vertex, bounds) ->
                                wanted.containsKey(vertex.toString())
                                        ? new JobVertexResourceRequirements(
                                                new Parallelism(
                                                        1,
                                                        Integer.parseInt(
                                                                wanted.get(vertex.toString()))))
                                        : bounds);
                if (!changed.equals(found)) {
                    client.sendRequest(
                                    new JobResourcesRequirementsUpdateHeaders(),
                                    parameters(context.getJobID()),
                                    new JobResourceRequirementsBody(new JobResourceRequirements(changed)))
                            .get();
                    System.out.println("requires " + wanted);
                }
            }
        }

        @Override
        public void realizeConfigOverrides(JobAutoScalerContext<JobID> context, ConfigChanges changes) {}
    }
}
