// Builds the page (www/) into www/dist: one HTML file, one style sheet, the page script, the engine worker and the wasm it loads.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import HtmlWebpackPlugin from 'html-webpack-plugin';
import MiniCssExtractPlugin from 'mini-css-extract-plugin';
import webpack from 'webpack';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Tells the service worker (`sw.js`, a name that never changes) which files the page is made of. */
class PageFiles {
  apply(compiler) {
    compiler.hooks.thisCompilation.tap('PageFiles', (compilation) => {
      const stage = webpack.Compilation.PROCESS_ASSETS_STAGE_REPORT;
      compilation.hooks.processAssets.tap({ name: 'PageFiles', stage }, (assets) => {
        const files = Object.keys(assets).filter((name) => name !== 'sw.js' && !name.endsWith('.map')).sort();
        const list = files.map((name) => [name, /\.[0-9a-f]{10}\./.test(name) ? '' : createHash('sha256').update(assets[name].buffer()).digest('hex').slice(0, 16)]);
        compilation.updateAsset('sw.js', (source) => new webpack.sources.RawSource(`const PAGE_FILES=${JSON.stringify(list)};\n${source.source()}`));
      });
    });
  }
}

/**
 * `--env made-up` swaps the engine worker for one that answers from made-up tables (www/dev). It exists to look at states that a real
 * table reaches rarely (100 000 fragments, a crash, a slow store) and is never part of the page that is shipped.
 */
export default (env = {}, argv = {}) => {
  const production = argv.mode !== 'development';
  const hashed = ({ chunk }) => (chunk?.name === 'sw' ? 'sw.js' : production ? '[name].[contenthash:10].js' : '[name].js');
  const madeUp = Boolean(env['made-up']);
  return {
    mode: production ? 'production' : 'development',
    target: 'web',
    entry: { page: at('./www/src/main.tsx'), sw: at('./www/src/offline/sw.ts') },
    output: {
      path: at(madeUp ? './www/dist-made-up' : './www/dist'),
      filename: hashed,
      chunkFilename: production ? '[name].[contenthash:10].js' : '[name].js',
      assetModuleFilename: '[name].[contenthash:10][ext]',
      clean: true,
    },
    resolve: {
      extensions: ['.tsx', '.ts', '.js'],
      extensionAlias: { '.js': ['.ts', '.tsx', '.js'] },
      conditionNames: ['browser', 'import', 'module', 'default'],
    },
    module: {
      rules: [
        { test: /\.tsx?$/, loader: 'ts-loader', options: { configFile: at('./www/tsconfig.json'), onlyCompileBundledFiles: true } },
        { test: /\.css$/, use: [MiniCssExtractPlugin.loader, 'css-loader'] },
      ],
    },
    plugins: [
      new PageFiles(),
      new HtmlWebpackPlugin({ chunks: ['page'], template: at('./www/index.html'), scriptLoading: 'module', hash: false }),
      new MiniCssExtractPlugin({ filename: production ? '[name].[contenthash:10].css' : '[name].css' }),
      ...(madeUp ? [new webpack.NormalModuleReplacementPlugin(/^\.\/spawn\.js$/, at('./www/dev/spawn.ts'))] : []),
    ],
    devtool: production ? false : 'source-map',
    performance: { hints: false },
    stats: 'errors-warnings',
  };
};
