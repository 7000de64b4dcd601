import java.io.IOException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.PluginInfo;

/**
 * One OpenSearch node in this process, from the jars of its class path.
 *
 * <p>Each argument is a setting, {@code name=value}; {@code path.home} and {@code node.name} are required and
 * {@code path.home/config} must exist. The node runs until a termination signal, or until standard input ends: its
 * owner holds the other end, so an owner that is killed takes the node with it.
 */
public final class OpenSearchNode {

  /** What a distribution loads from its modules folder; here the same classes come from the class path. */
  private static final List<String> MODULES =
      List.of(
          "org.opensearch.transport.Netty4ModulePlugin",
          "org.opensearch.analysis.common.CommonAnalysisModulePlugin",
          "org.opensearch.index.mapper.MapperExtrasModulePlugin",
          "org.opensearch.index.reindex.ReindexModulePlugin",
          "org.opensearch.index.rankeval.RankEvalModulePlugin",
          "org.opensearch.join.ParentJoinModulePlugin",
          "org.opensearch.painless.PainlessModulePlugin",
          "org.opensearch.script.expression.ExpressionModulePlugin",
          "org.opensearch.search.aggregations.matrix.MatrixAggregationModulePlugin");

  /** {@link Node} offers class path plugins only to its subclasses. */
  private static final class ClassPathNode extends Node {
    ClassPathNode(Environment environment, Collection<PluginInfo> modules) {
      super(environment, modules, true);
    }
  }

  private OpenSearchNode() {}

  public static void main(String[] arguments) throws Exception {
    Settings settings = settingsOf(arguments);
    Path configuration = Path.of(settings.get("path.home")).resolve("config");
    Environment environment =
        InternalSettingsPreparer.prepareEnvironment(
            settings, Map.of(), configuration, () -> settings.get("node.name"));
    Node node = new ClassPathNode(environment, MODULES.stream().map(OpenSearchNode::module).toList());
    Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node), "close-node"));
    Thread owner = new Thread(OpenSearchNode::exitWhenStandardInputEnds, "watch-owner");
    owner.setDaemon(true);
    owner.start();
    node.start();
    // The node's own threads are daemons: without this the process would end here.
    Thread.currentThread().join();
  }

  private static Settings settingsOf(String[] arguments) {
    Settings.Builder builder = Settings.builder();
    for (String argument : arguments) {
      String[] setting = argument.split("=", 2);
      builder.put(setting[0], setting[1]);
    }
    return builder.build();
  }

  private static PluginInfo module(String className) {
    return new PluginInfo(
        className, "class path module", "NA", Version.CURRENT, "21", className, null, List.of(), false);
  }

  private static void exitWhenStandardInputEnds() {
    try {
      while (System.in.read() >= 0) {
        // What the owner writes means nothing; only the end does.
      }
    } catch (IOException broken) {
      // A broken pipe means the same as its end.
    }
    System.exit(0);
  }

  private static void close(Node node) {
    try {
      node.close();
    } catch (IOException failure) {
      failure.printStackTrace();
    }
  }
}
