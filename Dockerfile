# One image for the service, the indexer's jobs and the follower: docs/containers.md.
# Tag and digest; the digest names the index of all platforms. Another one: --build-arg PYTHON_IMAGE=...
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm@sha256:d29f48a31a8b408ed19272ca1e7b10ebae13b240a27e862d3d4217c528e2e0c3

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python -m venv /opt/shop-directory
COPY requirements.lock ./
# Wheels only: nothing is compiled, and no package runs code of its own. The secret is pip's own configuration, for
# those who have packages elsewhere: --secret id=pip,src=pip.conf
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    /opt/shop-directory/bin/python -m pip install --only-binary :all: --require-hashes -r requirements.lock
# The typeahead's machine code takes minutes, so this step depends on the packages and on its own sources alone. It is for
# the baseline of the architecture: the image runs on other processors than this one.
ENV NUMBA_CPU_NAME=generic
COPY index_mappings/__init__.py index_mappings/tiers.py ./index_mappings/
COPY shop_directory/__init__.py ./shop_directory/
COPY shop_directory/typeahead/__init__.py shop_directory/typeahead/__main__.py shop_directory/typeahead/compiled.py shop_directory/typeahead/segment.py ./shop_directory/typeahead/
COPY shop_directory/typeahead/kernel ./shop_directory/typeahead/kernel
RUN /opt/shop-directory/bin/python -m shop_directory.typeahead
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY shop_directory ./shop_directory
COPY index_mappings ./index_mappings
COPY indexer ./indexer
COPY service ./service
# After the long steps, as they differ with every build.
ARG COMMIT=""
ARG BUILT_AT=""
ENV SHOP_DIRECTORY_COMMIT=${COMMIT} SHOP_DIRECTORY_BUILT_AT=${BUILT_AT}
# The last step takes away what only building needs.
RUN /opt/shop-directory/bin/python -m pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /wheels . \
    && /opt/shop-directory/bin/python -m pip install --no-deps --no-index --find-links /wheels shop-directory \
    && /opt/shop-directory/bin/python -m pip uninstall --yes hatchling pathspec trove-classifiers setuptools pip
# The machine code goes with the installed sources, which are the same: numba compiles again what does not belong to them.
# Isolated from this folder, which has the packages as well.
RUN cp shop_directory/typeahead/kernel/__pycache__/*.nb? \
      /opt/shop-directory/lib/python3*/site-packages/shop_directory/typeahead/kernel/__pycache__/ \
    && /opt/shop-directory/bin/python -I -m shop_directory.typeahead

FROM ${PYTHON_IMAGE}
# What is kept belongs to a user without a name or rights anywhere else; volumes take over owner and mode from here.
RUN groupadd --gid 10001 shop-directory \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/shop-directory \
       --shell /usr/sbin/nologin shop-directory \
    && install -d -o 10001 -g 10001 -m 0750 /var/lib/shop-directory /run/shop-directory /var/cache/shop-directory
COPY --from=build /opt/shop-directory /opt/shop-directory
ARG COMMIT=""
ARG BUILT_AT=""
LABEL org.opencontainers.image.title="Shop Directory" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${BUILT_AT}"
ENV PATH=/opt/shop-directory/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/tmp/numba \
    NUMBA_CPU_NAME=generic \
    SQLITE_TMPDIR=/var/lib/shop-directory \
    SHOP_DIRECTORY_COMMIT=${COMMIT} \
    SHOP_DIRECTORY_BUILT_AT=${BUILT_AT} \
    SHOP_DIRECTORY_HOST=0.0.0.0 \
    SHOP_DIRECTORY_PORT=8080
# Settings that name no other place keep everything below this one: index, state, tokens, reports.
WORKDIR /var/lib/shop-directory
USER 10001:10001
EXPOSE 8080
# Alive, whatever the engine does: a platform may replace what is not healthy. No client that heeds a proxy's variables.
HEALTHCHECK --interval=10s --timeout=10s --start-period=120s --retries=6 \
    CMD ["python", "-I", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['SHOP_DIRECTORY_PORT']), timeout=8); c.request('GET', '/health'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["shop-directory"]
CMD ["serve"]
