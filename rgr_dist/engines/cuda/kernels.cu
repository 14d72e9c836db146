// Training and scoring of a layer of edges, one lane to a thread block.
//
// Compiled at run time for one shape: kernels.py defines the constants in capitals. A block keeps
// its lane's weights in shared memory throughout the launch. THREADS threads compute the steps, and
// one more warp meanwhile draws the next step's context. The order of every sum is fixed: a lane's
// numbers have the same bits with any other lanes and any number of threads.
//
// In names: l items of a context (LENGTH), p and q its positions, i < d_model, c < C = 2 h d_k, the
// columns of [W_Q | W_K]. Rows are padded to multiples of four, and strides to odd ones, so
// that the threads of a quarter of a warp read from different banks.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ constexpr int up4(int n) { return (n + 3) / 4 * 4; }
__device__ constexpr int stride(int n) { return n / 4 % 2 ? n : n + 4; }
__device__ constexpr int at_least_one(int n) { return n < 1 ? 1 : n; }
__device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }

constexpr int D = HEADS * D_K, C = 2 * D, CP = up4(C), LP = up4(LENGTH), DP = up4(D_MODEL);
constexpr int LS = stride(LP), DS = stride(DP), GS = LP + 1;
constexpr int WORDS = (LENGTH + 31) / 32;              // one bit per position
constexpr int PAIR_TILES = LP / 4 * (LP / 4);          // of 4 x 4 pairs
constexpr int GROUPS = smaller(HEADS, at_least_one(THREADS / PAIR_TILES));
constexpr int IN_GROUP = (HEADS + GROUPS - 1) / GROUPS;  // heads in a group
constexpr int COLUMN_TILES = CP / 4, ROW_TILES = LP / 4, WIDTH_TILES = DP / 4;
constexpr int WEIGHT_TILES = COLUMN_TILES * WIDTH_TILES;
constexpr int OWN_TILES = (WEIGHT_TILES + THREADS - 1) / THREADS;  // tiles of W per thread
constexpr float GAIN_1 = 1 - BETA_1, GAIN_2 = 1 - BETA_2, KEPT_2 = BETA_2, SMALL = EPSILON;
constexpr int PARTS = (D_K + 7) / 8, PART = (D_K + PARTS - 1) / PARTS;  // columns of a head

struct Lanes {
  const float *items;      // [L, m, DP]
  const float *messages;   // [L, m, DP], of model value
  const int *starts;       // [L, m + 1]
  const int *targets;      // [L, edges]
  const u32 *keys;         // [L, 2], of the streams of training contexts
  float *W;                // [L, CP, DP]
  float *moments;          // [L, 2, OWN_TILES * 4, THREADS, 4], as threads hold them
  float *tau;              // [L, 3], with its moments
  int m, edges;
};

#define ROW __align__(16)  // read four at a time

struct Context {
  int nodes[WORDS * 32];
  u32 edges[LENGTH][WORDS];  // bit q of row p: the item at q is an out-neighbour of that at p
  ROW float X[LP * DS];
#if MESSAGES
  ROW float V[LP * DS];
#endif
};

struct Shared {
  Context context[2];
  ROW float P[CP * LS];          // queries and keys
  ROW union {                    // one or the other, by the stage of the step
    float dP[CP * LS];
#if !SOFTMAX
    struct { float score[GROUPS * LP * LP]; int head[GROUPS * LP * LP]; } best;
#endif
  } u;
  float G[LP * GS];              // gradient of the combined scores
#if SOFTMAX
  float A[HEADS * LP * GS];  // attention, then its gradient
#else
  u32 by_query[LP * HEADS][WORDS], by_key[LP * HEADS][WORDS];  // pairs where it is largest
#endif
#if MESSAGES
  ROW float error[LP * DS];
#endif
  float tau[3], slope[2];
  double error_sum;
  int counts[3], go;
  ROW float W[CP * DS];
};

extern "C" {
__device__ const int shared_bytes = sizeof(Shared);
}

__device__ __forceinline__ void together() {  // the threads that compute wait for each other
  asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

__device__ __forceinline__ float4 &four(float *at) { return *reinterpret_cast<float4 *>(at); }
__device__ __forceinline__ const float4 &four(const float *at) {
  return *reinterpret_cast<const float4 *>(at);
}

__device__ __forceinline__ float root(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---- contexts ------------------------------------------------------------------------------

__device__ uint4 philox(u32 key0, u32 key1, u32 c0, u32 c1, u32 c2, u32 c3) {
#pragma unroll
  for (int round = 0; round < 10; round++) {
    u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
    c0 = (u32)(b >> 32) ^ c1 ^ key0;
    c1 = (u32)b;
    c2 = (u32)(a >> 32) ^ c3 ^ key1;
    c3 = (u32)a;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return make_uint4(c0, c1, c2, c3);
}

__device__ __forceinline__ int below(int n, u32 word) { return __umulhi(word, (u32)n); }

// Draw what problem/contexts.py draws, with one warp: thread t holds positions t, t + 32, …
__device__ void draw(u64 index, u32 key0, u32 key1, int m, const int *starts, const int *targets,
                     u64 rate, int (&node)[WORDS]) {
  const int thread = threadIdx.x % 32;
  const u32 all = ~0u;
  uint4 word[WORDS];
  int taken[WORDS], kept[WORDS], drawn[WORDS];
#pragma unroll
  for (int r = 0; r < WORDS; r++) {
    int p = r * 32 + thread;
    word[r] = philox(key0, key1, p, (u32)index, (u32)(index >> 32), 0);
    taken[r] = p < LENGTH ? p + below(m - p, word[r].x) : -1;
    kept[r] = drawn[r] = -1;
  }
  // The shuffle without its deck: step p takes what lies at taken[p] and leaves what lay at p.
  // What lies at a place is what the last earlier step that took it left there, or else its number.
#pragma unroll
  for (int rp = 0; rp < WORDS; rp++) {
    for (int t = 0; t < 32 && rp * 32 + t < LENGTH; t++) {
      int p = rp * 32 + t, place = __shfl_sync(all, taken[rp], t), there = place, here = p;
#pragma unroll
      for (int r = 0; r <= rp; r++) {
        u32 before = r < rp ? all : (1u << t) - 1;
        u32 a = __ballot_sync(all, taken[r] == place) & before;
        u32 b = __ballot_sync(all, taken[r] == p) & before;
        if (a) there = __shfl_sync(all, kept[r], 31 - __clz(a));
        if (b) here = __shfl_sync(all, kept[r], 31 - __clz(b));
      }
      if (thread == t) {
        drawn[rp] = there;
        kept[rp] = here;
      }
    }
  }
  int start[WORDS], end[WORDS], target[WORDS];
#pragma unroll
  for (int r = 0; r < WORDS; r++) {
    node[r] = drawn[r];
    start[r] = drawn[r] < 0 ? 0 : starts[drawn[r]];
    end[r] = drawn[r] < 0 ? 0 : starts[drawn[r] + 1];
    target[r] = end[r] > start[r] ? targets[start[r]] : -1;
  }
#pragma unroll
  for (int rp = 0; rp < WORDS; rp++) {
    bool joins = end[rp] > start[rp] && (u64)word[rp].y < rate;
    for (u32 left = __ballot_sync(all, joins); left; left &= left - 1) {
      int t = __ffs(left) - 1;
      int source = __shfl_sync(all, drawn[rp], t);
      int first = __shfl_sync(all, start[rp], t), last = __shfl_sync(all, end[rp], t);
      int brought = __shfl_sync(all, target[rp], t), present = -1;
      bool has = false;
      for (int e = first; e < last && !has; e++) {
        int one = e == first ? brought : targets[e];
#pragma unroll
        for (int r = 0; r < WORDS; r++) has |= __ballot_sync(all, node[r] == one) != 0;
      }
      if (has) continue;
      u32 which = __shfl_sync(all, word[rp].w, t), where = __shfl_sync(all, word[rp].z, t);
      if (last - first > 1) brought = targets[first + below(last - first, which)];
#pragma unroll
      for (int r = 0; r < WORDS; r++) {
        u32 at = __ballot_sync(all, node[r] == source);
        if (at) present = r * 32 + __ffs(at) - 1;
      }
      int q = below(present < 0 ? LENGTH : LENGTH - 1, where);
      if (present >= 0 && q >= present) q++;
#pragma unroll
      for (int r = 0; r < WORDS; r++)
        if (r * 32 + thread == q) node[r] = brought;
    }
  }
}

// Fill a context with the given items, with one warp.
__device__ void gather(const Lanes &lanes, int lane, const int (&node)[WORDS], Context &context) {
  const int thread = threadIdx.x % 32;
  const int *starts = lanes.starts + (u64)lane * (lanes.m + 1);
  const int *targets = lanes.targets + (u64)lane * lanes.edges;
  const float *items = lanes.items + (u64)lane * lanes.m * DP;
#pragma unroll
  for (int r = 0; r < WORDS; r++) context.nodes[r * 32 + thread] = node[r];
  __syncwarp();
  for (int at = thread; at < LENGTH * WIDTH_TILES; at += 32) {
    int p = at / WIDTH_TILES, i = at % WIDTH_TILES * 4;
    four(context.X + p * DS + i) = four(items + (u64)context.nodes[p] * DP + i);
#if MESSAGES
    const float *messages = lanes.messages + (u64)lane * lanes.m * DP;
    four(context.V + p * DS + i) = four(messages + (u64)context.nodes[p] * DP + i);
#endif
  }
#pragma unroll
  for (int r = 0; r < WORDS; r++) {
    int p = r * 32 + thread;
    if (p >= LENGTH) continue;
    u32 bits[WORDS] = {};
    for (int e = starts[node[r]]; e < starts[node[r] + 1]; e++) {
      int target = targets[e];
#pragma unroll
      for (int q = 0; q < LENGTH; q++)
        if (context.nodes[q] == target) bits[q / 32] |= 1u << q % 32;
    }
#pragma unroll
    for (int w = 0; w < WORDS; w++) context.edges[p][w] = bits[w];
  }
}

// ---- a layer -------------------------------------------------------------------------------

// P = W X^T: queries and keys of a context.
__device__ void project(Shared &s, const Context &context) {
  for (int tile = threadIdx.x; tile < COLUMN_TILES * ROW_TILES; tile += THREADS) {
    int c = tile % COLUMN_TILES, p = tile / COLUMN_TILES * 4;
    float sum[4][4] = {};
#pragma unroll 4
    for (int i = 0; i < DP; i += 4) {
      float4 w[4], x[4];
#pragma unroll
      for (int r = 0; r < 4; r++) {
        w[r] = four(s.W + (c + r * COLUMN_TILES) * DS + i);
        x[r] = four(context.X + (p + r) * DS + i);
      }
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
          sum[r][k] += w[r].x * x[k].x;
          sum[r][k] += w[r].y * x[k].y;
          sum[r][k] += w[r].z * x[k].z;
          sum[r][k] += w[r].w * x[k].w;
        }
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
      four(s.P + (c + r * COLUMN_TILES) * LS + p) =
          make_float4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
  }
}

// Scores of 4 x 4 pairs by one head.
__device__ __forceinline__ void score(const float *P, int head, int p, int q, float (&sum)[4][4]) {
#pragma unroll
  for (int r = 0; r < 4; r++)
#pragma unroll
    for (int k = 0; k < 4; k++) sum[r][k] = 0;
#pragma unroll 8
  for (int c = head * D_K; c < (head + 1) * D_K; c++) {
    float4 a = four(P + c * LS + p), b = four(P + (D + c) * LS + q);
    float query[4] = {a.x, a.y, a.z, a.w}, key[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
      for (int k = 0; k < 4; k++) sum[r][k] += query[r] * key[k];
  }
}

#if SOFTMAX

// Attention of every head: softmax over q of <q_p, k_q> / sqrt(d_k).
__device__ void attend(Shared &s) {
  for (int at = threadIdx.x; at < PAIR_TILES * GROUPS; at += THREADS) {
    int tile = at % PAIR_TILES, group = at / PAIR_TILES;
    int p = tile / (LP / 4) * 4, q = tile % (LP / 4) * 4;
    for (int head = group * IN_GROUP; head < (group + 1) * IN_GROUP && head < HEADS; head++) {
      float sum[4][4];
      score(s.P, head, p, q, sum);
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int k = 0; k < 4; k++) s.A[(head * LP + p + r) * GS + q + k] = sum[r][k];
    }
  }
  together();
  const float scale = SCALE;
  for (int row = threadIdx.x; row < HEADS * LP; row += THREADS) {
    if (row % LP >= LENGTH) continue;
    float *A = s.A + row * GS, top = A[0], whole = 0;
    for (int q = 1; q < LENGTH; q++) top = fmaxf(top, A[q]);
    for (int q = 0; q < LENGTH; q++) whole += A[q] = expf((A[q] - top) * scale);
    whole = 1 / whole;
    for (int q = 0; q < LENGTH; q++) A[q] *= whole;
  }
  together();
}

__device__ __forceinline__ float combined(const Shared &s, int p, int q, int &head) {
  float sum = 0;
  head = 0;
#pragma unroll 8
  for (int one = 0; one < HEADS; one++) sum += s.A[(one * LP + p) * GS + q];
  return sum;
}

#else

// The largest score of every pair in each group of heads.
__device__ void attend(Shared &s) {
  for (int at = threadIdx.x; at < PAIR_TILES * GROUPS; at += THREADS) {
    int tile = at % PAIR_TILES, group = at / PAIR_TILES;
    int p = tile / (LP / 4) * 4, q = tile % (LP / 4) * 4;
    float top[4][4];
    int which[4][4];
    for (int head = group * IN_GROUP; head < (group + 1) * IN_GROUP && head < HEADS; head++) {
      float sum[4][4];
      score(s.P, head, p, q, sum);
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int k = 0; k < 4; k++)
          if (head == group * IN_GROUP || sum[r][k] > top[r][k]) {
            top[r][k] = sum[r][k];
            which[r][k] = head;
          }
    }
    if (group * IN_GROUP >= HEADS) continue;
#pragma unroll
    for (int r = 0; r < 4; r++) {
      int at = (group * LP + p + r) * LP + q;
      four(s.u.best.score + at) = make_float4(top[r][0], top[r][1], top[r][2], top[r][3]);
      *reinterpret_cast<int4 *>(s.u.best.head + at) =
          make_int4(which[r][0], which[r][1], which[r][2], which[r][3]);
    }
  }
  together();
}

__device__ __forceinline__ float combined(const Shared &s, int p, int q, int &head) {
  float top = s.u.best.score[p * LP + q];
  head = s.u.best.head[p * LP + q];
  for (int group = 1; group * IN_GROUP < HEADS; group++) {
    float other = s.u.best.score[(group * LP + p) * LP + q];
    if (other > top) {
      top = other;
      head = s.u.best.head[(group * LP + p) * LP + q];
    }
  }
  return top;
}

#endif

__device__ __forceinline__ bool is_edge(const Context &context, int p, int q) {
  return context.edges[p][q / 32] >> q % 32 & 1;
}

__device__ __forceinline__ bool retrieves(const Context &context, int p) {
  u32 any = 0;
#pragma unroll
  for (int w = 0; w < WORDS; w++) any |= context.edges[p][w];
  return any != 0;
}

#if MESSAGES

// Errors of the retrieved messages, from G, which holds the scores minus the edges.
__device__ void mix(Shared &s, const Context &context) {
  for (int at = threadIdx.x; at < LENGTH * DP; at += THREADS) {
    int p = at / DP, i = at % DP;
    float sum = 0;
#pragma unroll 8
    for (int q = 0; q < LENGTH; q++) sum += s.G[p * GS + q] * context.V[q * DS + i];
    s.error[p * DS + i] = sum;
  }
  together();
}

#endif

// ---- training ------------------------------------------------------------------------------

// Write dL/dS of the combined scores to G, and note which head has the largest score.
__device__ void go_back_from_loss(Shared &s, const Context &context, float sharpness) {
#if MESSAGES
  for (int at = threadIdx.x; at < LENGTH * LENGTH; at += THREADS) {
    int p = at / LENGTH, q = at % LENGTH, head;
    float S = combined(s, p, q, head);
    s.G[p * GS + q] = retrieves(context, p) ? S - (float)is_edge(context, p, q) : 0.f;
#if !SOFTMAX
    atomicOr(&s.by_query[p * HEADS + head][q / 32], 1u << q % 32);
    atomicOr(&s.by_key[q * HEADS + head][p / 32], 1u << p % 32);
#endif
  }
  together();
  mix(s, context);
  float count = 0;
  for (int p = 0; p < LENGTH; p++) count += retrieves(context, p);
  const float weight = 2 / fmaxf(1, count);
  for (int at = threadIdx.x; at < LENGTH * LENGTH; at += THREADS) {
    int p = at / LENGTH, q = at % LENGTH;
    float sum = 0;
#pragma unroll 4
    for (int i = 0; i < DP; i += 4) {
      float4 a = four(s.error + p * DS + i), b = four(context.V + q * DS + i);
      sum += a.x * b.x;
      sum += a.y * b.y;
      sum += a.z * b.z;
      sum += a.w * b.w;
    }
    s.G[p * GS + q] = weight * sum;
  }
#else
  const float negative = sharpness / (LENGTH * LENGTH), tau = s.tau[0];
#if BALANCED
  int count = 0;
  for (int p = 0; p < LENGTH; p++)
#pragma unroll
    for (int w = 0; w < WORDS; w++) count += __popc(context.edges[p][w]);
  const float positive = negative * ((float)(LENGTH * LENGTH) / fmaxf(1, count) - 1);
#else
  const float positive = negative * (LENGTH - 1);
#endif
  for (int at = threadIdx.x; at < LENGTH * LENGTH; at += THREADS) {
    int p = at / LENGTH, q = at % LENGTH, head;
    float logit = sharpness * (combined(s, p, q, head) - tau);
    bool edge = is_edge(context, p, q);
    float share = __fdividef(1, 1 + __expf(edge ? logit : -logit));
    float g = share * (edge ? -positive : negative);
    s.G[p * GS + q] = g;
#if !SOFTMAX
    atomicOr(&s.by_query[p * HEADS + head][q / 32], 1u << q % 32);
    atomicOr(&s.by_key[q * HEADS + head][p / 32], 1u << p % 32);
#endif
  }
#endif
  together();
}

// dP, the gradient of queries and keys.
__device__ void go_back_to_projections(Shared &s) {
#if SOFTMAX
  const float scale = SCALE;
  for (int row = threadIdx.x; row < HEADS * LP; row += THREADS) {
    int p = row % LP;
    if (p >= LENGTH) continue;
    float *A = s.A + row * GS, mean = 0;
    const float *G = s.G + p * GS;
    for (int q = 0; q < LENGTH; q++) mean += A[q] * G[q];
    for (int q = 0; q < LENGTH; q++) A[q] *= (G[q] - mean) * scale;
  }
  together();
  for (int at = threadIdx.x; at < C * LP; at += THREADS) {
    int p = at % LP, c = at / LP, of = c < D ? c : c - D;
    if (p >= LENGTH) continue;
    const float *dS = s.A + of / D_K * LP * GS;
    float sum = 0;
    if (c < D) {
#pragma unroll 8
      for (int q = 0; q < LENGTH; q++) sum += dS[p * GS + q] * s.P[(D + of) * LS + q];
    } else {
#pragma unroll 8
      for (int q = 0; q < LENGTH; q++) sum += dS[q * GS + p] * s.P[of * LS + q];
    }
    s.u.dP[c * LS + p] = sum;
  }
#else
  for (int at = threadIdx.x; at < 2 * LP * HEADS * PARTS; at += THREADS) {
    int p = at % LP, side = at / LP % 2, part = at / (2 * LP) % PARTS, head = at / (2 * LP * PARTS);
    if (p >= LENGTH) continue;
    int column = head * D_K + part * PART, row = p * HEADS + head;
    const float *other = s.P + (column + (side ? 0 : D)) * LS;
    const float *G = side ? s.G + p : s.G + p * GS;
    const int step = side ? GS : 1;
    float sum[PART] = {};
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      for (u32 left = side ? s.by_key[row][w] : s.by_query[row][w]; left; left &= left - 1) {
        int q = w * 32 + __ffs(left) - 1;
        float g = G[q * step];
#pragma unroll
        for (int c = 0; c < PART; c++)
          if (part * PART + c < D_K) sum[c] += g * other[c * LS + q];
      }
#pragma unroll
    for (int c = 0; c < PART; c++)
      if (part * PART + c < D_K) s.u.dP[(column + c + (side ? D : 0)) * LS + p] = sum[c];
  }
  for (int at = threadIdx.x; at < (CP - C) * LP; at += THREADS)
    s.u.dP[(C + at / LP) * LS + at % LP] = 0;
  for (int at = threadIdx.x; at < C * (LP - LENGTH); at += THREADS)
    s.u.dP[at / at_least_one(LP - LENGTH) * LS + LENGTH + at % at_least_one(LP - LENGTH)] = 0;
#endif
#if !MESSAGES
  if (threadIdx.x < 32) {
    float total = 0;  // in an order that does not depend on the number of threads
    for (int at = threadIdx.x; at < LENGTH * LENGTH; at += 32)
      total -= s.G[at / LENGTH * GS + at % LENGTH];
#pragma unroll
    for (int half = 16; half; half /= 2) total += __shfl_xor_sync(~0u, total, half);
    float *tau = s.tau;
    if (threadIdx.x == 0) {
      tau[1] += GAIN_1 * (total - tau[1]);
      tau[2] = KEPT_2 * tau[2] + GAIN_2 * total * total;
      tau[0] -= s.slope[0] * tau[1] / (root(tau[2]) * s.slope[1] + SMALL);
    }
  }
#endif
  together();
}

// dW and AdamW; each thread has its own weights, whose moments lie next to those of its
// neighbours in device memory, [2, OWN_TILES * 4, THREADS].
__device__ void update(Shared &s, const Context &context, float rate, float over, float4 *moments) {
#pragma unroll
  for (int own = 0; own < OWN_TILES; own++) {
    int tile = own * THREADS + threadIdx.x;
    if (tile >= WEIGHT_TILES) break;
    int i = tile % WIDTH_TILES * 4, c = tile / WIDTH_TILES;
    float sum[4][4] = {};
#pragma unroll 4
    for (int p = 0; p < LP; p += 4) {
      float x[4][4], d[4][4];
#pragma unroll
      for (int r = 0; r < 4; r++) {
        float4 a = four(context.X + (p + r) * DS + i);
        float4 b = four(s.u.dP + (c + r * COLUMN_TILES) * LS + p);
        x[r][0] = a.x, x[r][1] = a.y, x[r][2] = a.z, x[r][3] = a.w;
        d[r][0] = b.x, d[r][1] = b.y, d[r][2] = b.z, d[r][3] = b.w;
      }
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
          for (int t = 0; t < 4; t++) sum[r][k] += d[r][t] * x[t][k];
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
      float4 &at = four(s.W + (c + r * COLUMN_TILES) * DS + i);
      float w[4] = {at.x, at.y, at.z, at.w};
      float4 &first = moments[(own * 4 + r) * THREADS + threadIdx.x];
      float4 &second = moments[((OWN_TILES + own) * 4 + r) * THREADS + threadIdx.x];
      float one[4] = {first.x, first.y, first.z, first.w};
      float two[4] = {second.x, second.y, second.z, second.w};
#pragma unroll
      for (int k = 0; k < 4; k++) {
        float g = sum[r][k];
        one[k] += GAIN_1 * (g - one[k]);
        two[k] = GAIN_2 * g * g + two[k] * KEPT_2;
        w[k] -= __fdividef(one[k] * rate, root(two[k]) * over + SMALL);
      }
      first = make_float4(one[0], one[1], one[2], one[3]);
      second = make_float4(two[0], two[1], two[2], two[3]);
      at = make_float4(w[0], w[1], w[2], w[3]);
    }
  }
}

__device__ void begin(Shared &s, const Lanes &lanes, int lane) {
  float *all = reinterpret_cast<float *>(&s);
  for (int at = threadIdx.x; at < sizeof(Shared) / 4; at += THREADS + 32) all[at] = 0;
  __syncthreads();
  const float *W = lanes.W + (u64)lane * CP * DP;
  for (int at = threadIdx.x; at < CP * WIDTH_TILES; at += THREADS + 32) {
    int c = at / WIDTH_TILES, i = at % WIDTH_TILES * 4;
    four(s.W + c * DS + i) = four(W + c * DP + i);
  }
  if (threadIdx.x < 3) s.tau[threadIdx.x] = lanes.tau[lane * 3 + threadIdx.x];
}

// Take ``steps`` steps in the lanes listed in ``which``; step t has rates[t] and roots[t].
extern "C" __global__ void __launch_bounds__(THREADS + 32)
    train(Lanes lanes, const int *which, u64 first, int steps, const float *rates,
          const float *roots, float sharpness, u64 rate_word) {
  extern __shared__ float4 memory[];
  Shared &s = *reinterpret_cast<Shared *>(memory);
  const int lane = which[blockIdx.x];
  begin(s, lanes, lane);
  const bool draws = threadIdx.x >= THREADS;
  const int *starts = lanes.starts + (u64)lane * (lanes.m + 1);
  const int *targets = lanes.targets + (u64)lane * lanes.edges;
  const u32 key0 = lanes.keys[lane * 2], key1 = lanes.keys[lane * 2 + 1];
  float4 *moments = reinterpret_cast<float4 *>(lanes.moments) + (u64)lane * 8 * OWN_TILES * THREADS;
  __syncthreads();
  for (int step = -1; step < steps; step++) {
    if (draws) {
      if (step + 1 < steps) {
        int node[WORDS];
        draw(first + step + 1, key0, key1, lanes.m, starts, targets, rate_word, node);
        gather(lanes, lane, node, s.context[(step + 1) & 1]);
      }
    } else if (step >= 0) {
      const Context &context = s.context[step & 1];
      project(s, context);
#if !SOFTMAX
      u32 *bits = &s.by_query[0][0];
      for (int at = threadIdx.x; at < 2 * LP * HEADS * WORDS; at += THREADS) bits[at] = 0;
#endif
      if (threadIdx.x < 2) s.slope[threadIdx.x] = threadIdx.x ? roots[step] : rates[step];
      together();
      attend(s);
      go_back_from_loss(s, context, sharpness);
      const float rate = s.slope[0], over = s.slope[1];
      go_back_to_projections(s);
      update(s, context, rate, over, moments);
    }
    __syncthreads();
  }
  float *W = lanes.W + (u64)lane * CP * DP;
  for (int at = threadIdx.x; at < CP * WIDTH_TILES; at += THREADS + 32) {
    int c = at / WIDTH_TILES, i = at % WIDTH_TILES * 4;
    four(W + c * DP + i) = four(s.W + c * DS + i);
  }
  if (threadIdx.x < 3) lanes.tau[lane * 3 + threadIdx.x] = s.tau[threadIdx.x];
}

// ---- scores --------------------------------------------------------------------------------

// Count true positives, predicted edges and errors of each lane over ``count`` contexts of its own,
// int [rows, count, LENGTH], until its F1 is certainly not ``above``; for model value, sum errors.
extern "C" __global__ void __launch_bounds__(THREADS + 32)
    evaluate(Lanes lanes, const int *which, const int *rows, const int *contexts, int count,
             const double *actual, double above, int *counts, double *errors) {
  extern __shared__ float4 memory[];
  Shared &s = *reinterpret_cast<Shared *>(memory);
  const int lane = which[blockIdx.x];
  begin(s, lanes, lane);
  const bool draws = threadIdx.x >= THREADS;
  if (threadIdx.x == 0) s.go = 1;
  __syncthreads();
  for (int at = -1; at < count; at++) {
    if (draws) {
      if (at + 1 < count) {
        int node[WORDS];
#pragma unroll
        for (int r = 0; r < WORDS; r++) {
          int p = r * 32 + threadIdx.x % 32;
          u64 row = (u64)rows[blockIdx.x] * count + at + 1;
          node[r] = p < LENGTH ? contexts[row * LENGTH + p] : -1;
        }
        gather(lanes, lane, node, s.context[(at + 1) & 1]);
      }
    } else if (at >= 0) {
      const Context &context = s.context[at & 1];
      project(s, context);
      together();
      attend(s);
#if MESSAGES
      for (int pair = threadIdx.x; pair < LENGTH * LENGTH; pair += THREADS) {
        int p = pair / LENGTH, q = pair % LENGTH, head;
        s.G[p * GS + q] = combined(s, p, q, head) - (float)is_edge(context, p, q);
      }
      together();
      mix(s, context);
      for (int p = threadIdx.x; p < LENGTH; p += THREADS) {
        if (!retrieves(context, p)) continue;
        float sum = 0;
        for (int i = 0; i < DP; i++) {
          float error = s.error[p * DS + i];
          sum += error * error;
        }
        s.G[p * GS] = sum;
      }
      together();
      if (threadIdx.x == 0)
        for (int p = 0; p < LENGTH; p++)
          if (retrieves(context, p)) s.error_sum += s.G[p * GS];
#else
      int tp = 0, predicted = 0, wrong = 0;
      for (int pair = threadIdx.x; pair < LENGTH * LENGTH; pair += THREADS) {
        int p = pair / LENGTH, q = pair % LENGTH, head;
        bool called = combined(s, p, q, head) > s.tau[0], edge = is_edge(context, p, q);
        tp += called && edge;
        predicted += called;
        wrong += called != edge;
      }
      tp = __reduce_add_sync(~0u, tp);
      predicted = __reduce_add_sync(~0u, predicted);
      wrong = __reduce_add_sync(~0u, wrong);
      if (threadIdx.x % 32 == 0) {
        atomicAdd(&s.counts[0], tp);
        atomicAdd(&s.counts[1], predicted);
        atomicAdd(&s.counts[2], wrong);
      }
      together();
      if (threadIdx.x == 0 && above >= 0 && s.counts[2] > 0) {
        double twice = 2 * actual[blockIdx.x];
        if (twice / (twice + s.counts[2]) <= above) s.go = 0;
      }
#endif
    }
    __syncthreads();
    if (!s.go) break;
  }
  if (threadIdx.x < 3) counts[blockIdx.x * 4 + threadIdx.x] = s.counts[threadIdx.x];
  if (threadIdx.x == 3) counts[blockIdx.x * 4 + 3] = s.go;
  if (threadIdx.x == 0) errors[blockIdx.x] = s.error_sum;
}
